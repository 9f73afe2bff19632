"""The jobs, each with its arguments and rights in one place.

`code` is what all of them ship with, `job` one job with its role and its logs, `ingest` the streaming job, `upkeep` the jobs
that keep the tables in shape.
"""
