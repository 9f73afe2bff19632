"""The laptop twin: the AWS of a service in one child process, made from the very template that AWS is given.

`twin` starts and stops it; `synth` has this repository's CDK app write the template, and `assembly` deploys it. `server` is the
process itself: moto, with the mends of `sqs`, `sns`, `s3`, `glue`, `functions`, `events`, `account` and `cloudformation` laid
over it by `mend`; `rights` judges what a role may do by its `policy`; `run` is one run of a job, `handle` runs a function's
code, `fire` and `alarms` do what a clock would. `door` says who may ask. `process` and `clients` are shared. Only `server` and
what it lays over moto import moto, so everything else works without it.
"""
