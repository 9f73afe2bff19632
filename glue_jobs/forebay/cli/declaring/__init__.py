"""Commands for declarations and what comes of them.

* `tables` what there is and what is declared      * `schema` their columns
"""
