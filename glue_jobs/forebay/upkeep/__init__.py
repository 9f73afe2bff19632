"""Upkeep: jobs that run beside the stream and keep tables fast, small and complete.

* `compaction` small files become large ones      * `maintenance` old files and rows are deleted
* `after_load` landed files that were loaded are moved or deleted
* `erase` rows of erased subjects leave tables, and then disks
* `reconcile` files that S3 never announced are found and announced
* `complete` says whether all files of an hour or a day are in
* `accounts` compares what the ledger says of each file with the tables
* `run` a run over tables, each under its lease      * `events` what every such run reports
"""
