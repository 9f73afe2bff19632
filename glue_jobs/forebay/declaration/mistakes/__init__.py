"""Mistakes in declarations: where they are, and what to write instead.

* `places` file and line of a mistake      * `hints` suggestions
* `corrected` a declaration without its mistakes      * `common_name` a name that two declarations may give
"""
