"""The accounts: does the ledger say of each file what the tables hold of it?

* `tally` rows by file, in bounded memory      * `in_ledger` what the ledger says      * `in_tables` what the tables hold
* `open_batches` which of them are on their way      * `accounts` both held against each other
* `job` the nightly check      * `events` what it says
"""
