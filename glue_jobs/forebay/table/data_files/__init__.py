"""The data files of tables.

* `files` writes those of all tables in one Spark job      * `data_file` what such a job answers
* `upload` files on their way      * `storage` puts them into the tables' folders
* `fewer_rows` rewrites files that no log names yet
* `statistics` what is in a data file      * `dictionaries` the encoding of its columns
* `partition` names folders      * `in_arrow` Arrow's names of types
"""
