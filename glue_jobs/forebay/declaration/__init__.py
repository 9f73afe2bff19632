"""Declarations: TOML becomes frozen, checked values.

* `service` a whole service      * `loading` makes it of `files` in a folder or in S3
* `table` one table, or one pattern of tables
* `column` a declared column      * `column_type` its type           * `expectation` what must hold of a row
* `feed` files of one kind, and the envelope of their records     * `place` a bucket and a prefix
* `agreement` mistakes between the parts of a service             * `order` which table a record tries first
* `places` file and line of a mistake    * `hints` suggestions    * `corrected` a declaration without its mistakes
* `privacy` personal fields of records                            * `personal` the same, for the tasks
* `path` how a field is named            * `column_name` the name of its column, and the keys that share it
* `common_name` a name that two declarations may give
* `condition` a test of a field that routes its record to a table
* `form` the format of files, and where their records are
* `event_time` the timestamp of a record                          * `schedule` when upkeep runs
* `merge` the state or history that a table's changes are merged into
* `properties` Delta table properties that may be declared
* `rollup` aggregates over the rows of tables
* `pinned` the declarations of work that may be repeated          * `in_force` those of a lake's ingest job
* `complete` when all files of an hour or a day are in
* `deployed` those that came with a deployment
* `object_key` fields that come from the object instead of the record
"""
