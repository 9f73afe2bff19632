"""A batch as Spark's expressions have it: each record is read by the definitions of `forebay.record`, and Spark routes, checks,
counts and writes the rows. The product has no such batch. The one pass is compared with it.

* `batch` the steps      * `records` what declarations read of them      * `routing` which record belongs to which table
* `declared_columns` of rows      * `expectations` what must hold of a row      * `dedupe` records that came before
"""
