"""Files that S3 never announced are found by listing the landing bucket, and announced.

* `landed` what lies in the bucket      * `known` what the ledger has      * `job` the run      * `events` what it says
* `last` what the last run found
* `backfill` a bucket that already has years of files      * `inventory` S3's own report of what is in it
"""
