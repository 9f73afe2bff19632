"""SQL in declarations: how Spark reads it, what is wrong with it, and what it may cost.

* `check` what is wrong with declared SQL, before the first record      * `check_rollups` the same of rollups
* `references` the columns that it names      * `analysis` how Spark refuses it
* `node` a part of it, analysed      * `bound` how large it may make a value
* `attempt` SQL that may fail on a row
* `columns` declared columns and types in Spark's words      * `day` of a declared moment, which needs no Spark
* `questions` that Spark is asked about the records of a batch
"""
