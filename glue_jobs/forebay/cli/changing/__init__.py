"""Commands that load, move or remove what was loaded, or that run a job.

* `ingest` ingest, stop      * `backfill` files that were there before      * `upkeep` compact, merge, maintain
* `find_missed` files that S3 never announced      * `landed` moved or deleted after they were loaded
* `files` what became of files      * `forget` lets their rows leave      * `replay` reads them again; `chosen_files` which
* `held` quarantine, parked      * `pause` pause, resume      * `rollback` tables back; `drop` them
* `queue` peek, dlq, redrive      * `lease` show, break
"""
