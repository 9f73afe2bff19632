"""Commands for declarations and what comes of them.

* `tables` what exists and what is declared      * `check` what is wrong with it      * `schema` their columns
"""
