"""Declarations: what a studio writes in TOML becomes frozen, checked values.

* `service` a whole service, of `files` in a folder or in S3       * `table` one table, or one pattern of tables
* `column` a declared column and its type                         * `expectation` what must hold of a row
* `feed` files of one kind, and what lies around their records    * `place` where files lie
* `agreement` what is wrong between the parts of a service       * `order` which table a record tries first
* `places` file and line of a mistake    * `hints` what was meant    * `mended` the rest, once a mistake is out of the way
* `privacy` what is personal in records    * `personal` the same, as the tasks take it
* `path` how a field is named            * `twin` keys that mean the same field      * `column_name` the name of its column
* `common_name` a name that two declarations may give
* `condition` what a field must be, for a table to want its record
* `form` how the records lie in a file
* `event_time` the moment of a record                             * `schedule` when upkeep runs
* `merge` what the changes of a table are merged into
* `properties` Delta's own that may be declared
* `rollup` aggregates over the rows of tables
* `pinned` the declarations of work that may be repeated          * `in_force` those of a lake's ingest job
* `deployed` those that came with a deployment
* `object_key`, `object_metadata` fields that come from the object instead of the record
"""
