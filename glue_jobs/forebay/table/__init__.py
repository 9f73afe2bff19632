"""Tables: rows on their way into Delta tables, each batch exactly once in each of them.

* `staging` writes the data files of a batch for many tables, each a `destination`, once they are `ready`
* `staged` data files in no log yet, kept until they are committed      * `fan_out` commits them to many tables
* `removal` lets rows leave a table, and others come after them
* `replace` does both in one commit, `exchange` for very many files
* `data_files` writes the data files of all tables in one Spark job
* `shaping` gives rows the columns that their records bring; `from_records` and `as_records` do and undo it for DataFrames
* `schema` compares columns      * `widening` changes a column to a wider type
* `kernel` a table's log, and its commits, through the class in `java`
* `commit` the ends of a commit      * `actions` changes of protocol and metadata
* `catalog` the Glue Data Catalog      * `events`
"""
