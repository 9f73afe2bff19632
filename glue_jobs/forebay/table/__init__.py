"""Tables: rows on their way into Delta tables, each batch exactly once in each of them.

`fan_out` appends one batch to many tables; `files` writes their data files in one Spark job, `statistics` says what is in
them, `partition` names their folders, `storage` puts them there, `schema` compares columns, and `kernel` commits.
"""
