"""A Delta table's log, read without Spark, without a JVM and without opening a data file.

* `live_file` a data file that a table consists of      * `listing` which checkpoint and which commits make up a version
* `definition` schema, partitions and properties
* `replay` what its checkpoint and its commits come to      * `snapshot` the table at its newest version
* `commit` what one commit did to the rows
* `restored` whether somebody took a table back by hand
* `replace_files` a commit without Spark      * `tables` which tables a lake has
"""
