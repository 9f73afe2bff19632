"""The ledger: one row per file and what became of it. It is the truth about what was loaded.

* `entry` the row and its words                              * `versions` which files of a batch are loaded
* `index` which files are known, in the driver's memory      * `ledger` the Delta table
"""
