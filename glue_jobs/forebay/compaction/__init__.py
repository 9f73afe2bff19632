"""Compaction: small files in, large ones out, no row changed, and readers undisturbed.

* `live_files` what a table consists of, from its log, without Spark
* `policy` when a partition is worth rewriting, and what a run may cost      * `outcome` what a rewrite makes of files
* `look` one table's partitions: which are worth it, and why      * `task` what is to be done, and what is left alone
* `plan` the tasks of all tables, in order and within the budget; pure
* `rewrite` small files rewritten into large ones by Delta's OPTIMIZE
"""
