"""A batch as Spark's expressions have it: rows are routed, checked, counted and written by Spark. No batch of the product goes
this way: it is what the one pass is compared with.

* `batch` the steps      * `routing` which record belongs to which table      * `declared_columns` of rows
* `expectations` what must hold of a row      * `dedupe` records that came before
"""
