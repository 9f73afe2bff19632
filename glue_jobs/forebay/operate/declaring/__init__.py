"""Declarations of tables, and how the tables differ from them.

* `declarations` pull, check and push them      * `drift` where a table differs from its declaration
* `columns` of a table and where they came from      * `settle` decides their types again, by all rows
* `redeclared` gives present rows their declared columns      * `former_archives` that the declarations do not name
"""
