"""Declarations, tried on sample files before anything is deployed.

* `samples` files to try declarations on      * `sheltered` those of them that may take too much
* `trial` what would become of them      * `sql_names` of tables that need no quotes      * `draft` of declarations, from them
* `trial_merge` which of them would win      * `trial_dedupe` which would be dropped as duplicates
* `trial_transform` what a declared function would make of them
"""
