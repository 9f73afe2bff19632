"""Files that S3 never announced are found by listing the landing bucket, and announced.

* `landed` the bucket's listing      * `known` the files in the ledger      * `job` the run      * `events` its events
* `last` the result of the last run
* `backfill` a bucket that already has years of files      * `inventory` the report of S3 Inventory
"""
