"""The batch: file names go in, rows come out in every table that they belong to, and the ledger is written last.

* `batch` the driver: which batches begin, and which continue      * `attempt` the steps of one of them
* `names` of its files, as rows
* `plan` how its files ended, and the data files that have its rows, pinned
* `declarations` those that it works by
* `poison` files that kill their readers, found by halving
* `reasons` why a record is in the quarantine: every reason, once
* `expectations` how tables stood up to theirs      * `dedupe` records that came before
* `recent_ids` the ids of the last days, in memory
* `retrying` held records: quarantined or parked
* `leftovers` of superseded files, in tables that could not be written
* `late_commits` of a driver that died      * `ledger_change` counts of files that are in the ledger already
* `one_pass` reads files and writes data files in one Spark job
* `staging` data files as tables to commit, and which are not written      * `writing` they become rows of tables
* `commits` what all of a batch's commits share, and those to our own tables
* `new_tables` the limit on new tables a day      * `held` the quarantine and the parked records
* `accounting` the counts of a batch, made to add up      * `events` what is said about it
"""
