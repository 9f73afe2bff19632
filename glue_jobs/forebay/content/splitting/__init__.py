"""Text becomes records.

* `split` chooses how      * `lines` a record on each line      * `skeleton`, `structure` by brackets
* `salvage` around broken lines      * `ranges` the lines that belong to a part of a large file
"""
