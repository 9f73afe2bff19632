"""Decides whether every file of an hour is in, from the ledger, the landing bucket's listing, and the feed's declaration.

* `judge` the answer for one period, pure      * `look` what the answer is made from, and the table that keeps it
* `watch` looks beside the ingest job's batches      * `tell` one event on EventBridge for each change
* `events` what went wrong meanwhile
"""
