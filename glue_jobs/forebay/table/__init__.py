"""Tables: rows on their way into Delta tables, each batch exactly once in each of them.

`fan_out` appends one batch to many tables; `files` writes their data files in one Spark job, `statistics` says what is in
them, `partition` names their folders, `storage` puts them there, `schema` compares columns, and `kernel` commits.
`shaping` gives rows the columns that their records bring (`from_records` and `as_records` do so and undo it for whole
DataFrames), `replace` lets rows take the place of others, and `catalog` tells the Glue Data Catalog.
`conflict` knows a commit that another writer's commit refused, `widening` changes a column to a wider type,
`in_arrow` names Arrow's types, and `events` says what happened.
"""
