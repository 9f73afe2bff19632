"""Maintenance: files and rows past their retention are deleted, and logs stay quick to read.

* `retention` how long files are kept; pure      * `orphans` data files that no log knows of
* `expiry` records set aside that are past their time      * `vault` its table
* `care` Spark's part: properties, VACUUM, a checkpoint      * `job` the run      * `events` what it says
"""
