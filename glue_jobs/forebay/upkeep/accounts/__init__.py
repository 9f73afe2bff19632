"""The accounts: compare the ledger's counts of each file with the tables.

* `tally` rows by file, in bounded memory      * `in_ledger` what the ledger says      * `in_tables` what the tables hold
* `open_batches` which of them are on their way      * `accounts` both held against each other
* `job` the nightly check      * `events` what it says
"""
