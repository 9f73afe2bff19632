"""Everything on AWS, as one CDK app: `python -m infra.app` synthesizes it offline, `cdk deploy` puts it there.

`stack.py` wires on one screen; every other module is one capability. Nothing here imports Spark.
"""
