"""What an operator does: look at the accounts and the tables, try things out, put them right. The command line only shows it.

* `lake_view` answers from the lake, without a JVM      * `accounts` do the numbers add up?
* `declarations` pull, check and push declarations      * `drift` where a table differs from its declaration
* `columns` the columns of a table and where they came from      * `settle` decides them again, by all rows
* `held` quarantined and parked records      * `quality` verdicts on expectations      * `personal` fields that look so
* `files` what the ledger has      * `where` the life of one file
* `replay` files that are read again      * `forget` files whose rows leave      * `aside` into another lake
* `rollback` tables that go back to an earlier version      * `rollback_ledger` its files, in the ledger
* `rollback_ids` their records, as `dedupe` knows them      * `alone` while nobody else writes
* `outlook` what is kept of persons      * `erase` them, everywhere      * `landing` where their records came from
* `unseen` where more of them may be      * `erase_report` what became of it, signed
* `export` the changes of a table, as files for other tools      * `export_manifest` which of these files count
* `export_rows` the rows of a step of an export, a part at a time
* `status` how it is going      * `report` hour by hour, as a `page`      * `cost` of this month so far
* `aws_answers` alarms and runs as plain values      * `deployed` what AWS tells of runs, alarms and deployments
* `person` what the vault holds of one
* `queue` what waits, and what died      * `refused` what nobody understood      * `sql` queries over tables and ledger
* `history` what happened when, and what operators did      * `doctor` can the deployed service work?
* `health` the state of tables      * `stop` ends a running job
* `samples` files to try declarations on      * `sheltered` those of them that may take too much
* `trial` what would become of them      * `draft` of declarations, from them
* `trial_merge` which of them would win      * `trial_dedupe` which would be dropped as duplicates
"""
