"""Upkeep: jobs that run beside the stream and keep tables fast, small and complete.

* `compaction` small files become large ones      * `maintenance` what nobody needs any more is deleted
* `reconcile` files that S3 never announced are found and announced
* `accounts` what the ledger says of each file is held against the tables
"""
