"""Changes to loaded files, and the end of a running job.

* `replay` files that are read again      * `forget` files whose rows leave      * `aside` into another lake
* `rollback` tables that go back to an earlier version      * `rollback_ledger` its files, in the ledger
* `drop` tables that go for good      * `must_stay` why others do not
* `reopen` hours that lost rows with it      * `rollback_erased` nobody comes back who was erased
* `rollback_ids` their records, as `dedupe` knows them      * `alone` while nobody else writes      * `stop` ends a running job
"""
