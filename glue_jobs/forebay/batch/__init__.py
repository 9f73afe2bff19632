"""The batch: names of files go in, rows stand in every table they belong to, and the ledger says so last.

* `batch` the steps, in order      * `routing` which record belongs to which table, as one Spark expression
* `accounting` the counts of a batch, made to add up      * `events` what is said about it
"""
