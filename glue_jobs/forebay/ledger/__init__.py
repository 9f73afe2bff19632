"""The ledger: one row per file, with its outcome. It is the source of truth about what was loaded.

* `entry` the row and its words      * `versions` those of the versions of a key
* `claim` the facts about the files of a batch, and the `decision` about each of them
* `skips` files that an operator wants left out             * `ignored` files that the declarations leave out
* `index` which files are known, in the driver's memory      * `ledger` the Delta table
* `withheld` files that S3 did not give, and the time of each one's next try      * `data_files` read without Spark
* `deletions` of keys, which take out what was there before      * `cleared` those that forebay made itself
* `lost` whether a lake has it, and what it means if not      * `last_versions` of ledger and ids: older ones may be restored
* `brought_back` held records that it says have left
* `periods` the hours and days that are complete      * `services` of one lake, and the ids by which each knows its files
"""
