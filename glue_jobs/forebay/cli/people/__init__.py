"""Commands for the data of people.

* `privacy` scan, secret, erase      * `report` privacy report      * `vault` privacy show, rotate
"""
