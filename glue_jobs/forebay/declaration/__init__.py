"""Declarations: TOML becomes frozen, checked values.

* `service` a whole service      * `loading` makes it of the files of a folder or of S3
* `kept` where declarations are      * `mistakes` where they are wrong, and what to write instead
* `table` one table, or one pattern of tables
* `column` a declared column      * `column_type` its type           * `expectation` what must hold of a row
* `feed` files of one kind, and the envelope of their records     * `place` a bucket and a prefix
* `agreement` mistakes between the parts of a service             * `order` which table a record tries first
* `privacy` personal fields of records                            * `personal` the same, for the tasks
* `path` how a field is named            * `column_name` the name of its column, and the keys that share it
* `condition` a test of a field that routes its record to a table
* `form` the format of files, and where their records are
* `event_time` the timestamp of a record                          * `schedule` when upkeep runs
* `merge` the state or history that a table's changes are merged into
* `layout` of a table's files              * `properties` Delta table properties that may be declared
* `rollup` aggregates over the rows of tables
* `complete` when all files of an hour or a day are in
* `object_key` fields that come from the object instead of the record
"""
