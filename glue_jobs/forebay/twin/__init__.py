"""The laptop twin: S3, SNS and SQS of a service in one child process, wired as in the cloud.

`twin` starts and stops it, `wiring` makes its buckets, topic and queues, `server` is the process itself: moto, with the
mends of `sqs` and `s3` laid over it by `mend`. Only `server` and below import moto, so everything else of forebay
works without it.
"""
