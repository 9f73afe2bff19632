"""After load: maintenance moves or deletes landed files that were loaded, as `after_load` declares.

* `due` which files of the ledger are due; pure          * `effect` one file is copied and deleted, each with a condition
* `copying` a copy, of objects of any size
* `lost` whether its rows are lost, so that it may be their only copy
* `originals` duplicates that may be the only copy of their original
* `readers` the services that may still need a file      * `notes` the Delta table of what was done
* `job` the step      * `events` what it says
"""
