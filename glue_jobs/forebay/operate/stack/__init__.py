"""A deployed service as AWS reports it, in plain values. Read-only.

`aws_answers` and `cost` import neither boto3 nor pyarrow, because the function that writes the status page has no pyarrow.

* `aws_answers` alarms and runs as plain values      * `cost` of this month so far
* `deployment` what CloudFormation says is there      * `answer` of a thing that may not be there
* `deployed` runs, alarms and deployments
"""
