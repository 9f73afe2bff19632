"""The laptop twin: the AWS of a service in one child process, made from the very template that AWS is given.

`twin` starts and stops it; `synth` has this repository's CDK app write the template, and `assembly` deploys it. `server` is the
process itself: moto, with the patches of `sqs`, `sns`, `s3`, `glue`, `functions`, `events`, `account`, `quick` and
`cloudformation`, which `patch` applies; `rights` judges the permissions of a role by its `policy`; `run` is one run of a job,
`handle` runs a function's code, `fire` and `alarms` do the work of a clock. `door` controls access, and connections are
`kept_alive`. `process` and `clients` are shared. Only `server`, `kept_alive` and the patches import moto; everything else works
without it.
"""
