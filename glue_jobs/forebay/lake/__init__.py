"""The lake: its objects, who may write to it, and what its tables consist of. No Spark, except in `safety`.

* `layout` where a lake keeps what is forebay's own      * `log` the log of a Delta table, read without Spark
* `listed` objects as a list of a place names them      * `ranged` an object, read in part
* `s3_objects` and `folder_objects` bytes by name, durable and conditional      * `objects` whichever of the two a place means
* `lease` one driver at a time, by an `s3_lease` or a `folder_lease`; `lease_holder` who drives
* `stop` a request that a running job should stop
* `paused` tables whose rows wait      * `rollback_plan` tables that are going back
* `rows` of Arrow, as Python has them      * `conflict` commits that others may come before
* `safety` is it safe for several writers? Sessions of all that writes      * `guard` is it safe beside foreign ones?
* `origin` what a table is computed from, if it is
* `health` the state of each table, in small objects
"""
