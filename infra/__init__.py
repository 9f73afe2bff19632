"""Everything on AWS, as one CDK app: `python -m infra.app` synthesizes it offline, `cdk deploy` puts it there.

`forebay.py` wires on one screen, as a construct for any stack; `app.py` has one such stack; `foundation.py` is what jobs and
functions stand on; `jobs/` and `functions/` have each job and function with its settings and rights; every other module is one
capability. Nothing here imports Spark.
"""
