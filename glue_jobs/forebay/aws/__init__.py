"""AWS: clients, metrics, and checks that what the settings name exists.

* `client` makes every boto3 client      * `retrying` how often to retry, and how long to wait between attempts
* `quick_gets` GETs of objects in a quarter of boto3's CPU      * `signature` signs them
* `cloudwatch` publishes the metrics of events      * `delta_rs` gives delta-rs boto3's credentials
* `preflight` checks that the queue and the lake exist      * `prices` what AWS asks for, with a date
* `emr` the states of EMR Serverless runs      * `console` the domain of the console in a region
* `announce` sends S3-style notifications to a queue
"""
