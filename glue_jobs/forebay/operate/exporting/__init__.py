"""The changes of a table, as files for other tools.

* `export` writes one step after another      * `manifest` which of its files count
* `rows` of a step, a part at a time
"""
