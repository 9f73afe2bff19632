"""The batch: names of files go in, rows come out in every table they belong to, and the ledger has them last.

* `batch` the steps, in order      * `names` of its files, as rows
* `plan` how its files ended, and the data files that have its rows, pinned      * `staged` those files
* `declarations` those that it works by      * `seen` what earlier passes over its files have shown
* `poison` files that kill their readers, found by halving
* `fields` what the declarations name, parsed once      * `routing` which record belongs to which table, as one expression
* `columns` how a text becomes a column's value      * `declared_columns` the columns that rows get
* `reasons` why a record is in the quarantine: every reason, once
* `record_fields` the fields of a record, with their original text      * `attempt` declared SQL that may fail on a row
* `declared_sql` its names, where columns of many declarations are side by side
* `check_sql` what is wrong with declared SQL, before the first record      * `check_rollups` the same of rollups
* `analysis` how Spark refuses SQL      * `bound` how large it may make a value
* `expectations` what must hold of a row      * `dedupe` records that came before
* `recent_ids` the ids of the last days, in memory
* `treated` what is personal in records that come back
* `retry` of held records: quarantined or parked      * `retry_plan` which ones, durable before anything happens
* `moving` them, into tables and out of where they were held
* `turns` of a batch and a retry that concern the same file
* `leftovers` of superseded files, in tables that could not be written
* `late_commits` of a driver that died      * `ledger_change` counts of files that are in the ledger already
* `one_pass` reads files and writes data files in one Spark job
* `staging` which tables are not written      * `writing` they become rows of tables
* `commits` what all of a batch's commits share, and those to our own tables
* `new_tables` the limit on new tables a day      * `held` the quarantine and the parked records
* `accounting` the counts of a batch, made to add up      * `ending` the ledger's rows of it
* `reporting` what is said about it, in the words of `events`
"""
