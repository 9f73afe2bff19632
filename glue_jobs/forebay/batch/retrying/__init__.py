"""Retries held records: quarantined ones after a fix, parked ones when a table accepts them.

* `retry` carries a choice of them out      * `plan` which ones      * `planning` makes that durable before anything happens
* `chosen` those records, through the pass that a batch goes through
* `reserved` ids of theirs, so that no batch loads a copy at the same time
* `moving` them, into tables and out of where they were held
"""
