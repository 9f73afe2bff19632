"""Commands for declarations and what comes of them.

* `tables` what exists and what is declared      * `schema` their columns
"""
