"""The batch: file names go in, rows come out in every table that they belong to, and the ledger is written last.

The order is that of the imports. Each part uses only parts that come after it:

* `batch` which batches begin, and which continue
* `attempt` the steps of one of them      * `retrying` held records, which were quarantined or parked
* `leftovers` of superseded files, in tables that could not be written
* `ledger_change` new counts for files that the ledger has already
* `writing` staged data files become rows of tables      * `staging` data files of a pass as tables, and which are not written
* `one_pass` reads files and writes data files in one Spark job
* `dedupe` records that came before      * `recent_ids` their ids of the last days, in memory
* `commits` what all of a batch's commits share, and those to our own tables      * `late_commits` of a driver that died
* `plan` how its files ended, and the data files that have its rows, pinned
* `poison` files that kill their readers, found by halving
* `expectations` how tables stood up to theirs      * `accounting` the counts of a batch, made to add up
* `new_tables` the limit on new tables a day      * `events` what is said about a batch
* `reasons` why a record is in the quarantine: every reason, once
"""
