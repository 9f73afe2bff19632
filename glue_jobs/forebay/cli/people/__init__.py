"""Commands for the data of people.

* `privacy` scan, secret, erase, report      * `vault` privacy show, rotate
"""
