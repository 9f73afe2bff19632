"""Erasure: removes the rows of erased subjects from every table, and then from every object that held them. The same for
expired rows.

* `plan` who is erased, and the progress      * `places` the columns with a row's subject
* `rows` the rows of a data file      * `table` one table, in one commit
* `purge` what is gone from disk      * `due` and when      * `vault` what it forgets
* `keeping` what declarations keep so that people can be erased
* `counts` the ledger, after rows left      * `age` rows that are kept no longer      * `landed` what is left of an object

No Spark. The run is `forebay.operate.people.erase`.
"""
