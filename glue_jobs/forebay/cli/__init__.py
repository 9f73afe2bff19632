"""The command line: `forebay ...`. It reads arguments and shows answers; what is done is done in the rooms.

* `start` imports `main`, which finds the command, and shows errors
* `examples` for `--help`      * `options` that several commands share
* `environment` the variables that are read
* `usage` mistakes on the command line, in one line      * `folder` what forebay.toml says
* `confirm` the question before a command changes something      * `interrupted` what Ctrl-C leaves to do
* `job_options` the options of a command that runs a job, made of its settings
* `ingest` ingest, stop      * `accounts` do the sums hold?      * `files` what became of files
* `forget` lets their rows leave      * `show` how answers look
* `status` how it is going      * `report` as a page      * `query` SQL
* `queue` peek, dlq, redrive      * `lease` show, break      * `privacy` scan, secret, erase, report
* `vault` privacy show, rotate
* `pause` pause, resume      * `replay` read files again      * `rollback` tables back
* `progress` how far a long command is      * `export` what changed, for other tools
* `backfill` files that were there before      * `history` what happened when
* `tables` what there is and what is declared, `health` how it is      * `schema` columns      * `held` quarantine, parked
* `try_out` what would become of sample files
* `doctor` can the deployed service work?      * `upkeep` compact, maintain, reconcile      * `quality` verdicts on expectations
"""
