"""Where declarations are kept.

* `files` of TOML, in a folder or in S3      * `deployed` those that came with a deployment
* `in_force` those of a lake's ingest job      * `pinned` those of work that may be repeated
* `newest` those that a job takes up while it runs
"""
