"""The jobs, each with its arguments and rights in one place.

`code` is what all of them ship with, and `job` one job with its role and logs. `ingest` is the streaming job, and `upkeep`
the jobs that keep the tables in shape.
"""
