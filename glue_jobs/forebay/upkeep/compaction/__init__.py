"""Compaction: small files in, large ones out, no row changed, and readers undisturbed.

* `live_files` what a table consists of, from its log, without Spark
* `policy` when a partition is worth rewriting, and what a run may cost      * `declared` the policy that declarations make
* `rewrite` what a rewrite makes of files      * `candidates` one table's partitions: which are worth it, and why
* `task` one partition to rewrite, or to skip      * `plan` the tasks of all tables, within the budget; pure
* `work` tasks that one commit can carry      * `carry_out` Spark at work on one table
* `job` the run: plan, lease, carry out, report      * `memory` what a run remembers of tables
* `events` what it reports
"""
