"""The environment variables that forebay reads, and what each does. Data for the reference."""

from __future__ import annotations

ENVIRONMENT = {
    "FOREBAY_LAKE": "The lake: `s3://bucket/prefix`, or a folder such as `./lake`. Replaces `--lake`.",
    "FOREBAY_SERVICE": "The declarations: a folder, a `service.toml` or an `s3://` prefix. Replaces `--service`.",
    "FOREBAY_QUEUE_URL": "The SQS queue that S3 announces files to. Replaces `--queue-url`.",
    "FOREBAY_LANDING": "Where files land, such as `s3://studio-drops/in/`. Replaces `--landing`.",
    "FOREBAY_STACK": "The deployed stack, such as `forebay-prod`. Replaces `--stack`.",
    "FOREBAY_LOCAL": "The folder of the twin. Replaces `--state` of the `local` commands.",
    "FOREBAY_LOG": "`error` leaves only error events in the log.",
    "FOREBAY_MANIFESTS": "Where the source keeps its manifests if the option `manifestPath` is not given.",
    "FOREBAY_JARS": "The folder of the JVM libraries, if they are not where `make setup` puts them.",
    "FOREBAY_JAVA_OPTIONS": "More options for the JVM of the driver.",
}

OF_AWS = {
    "AWS_REGION": "The region.",
    "AWS_PROFILE": "The profile of the shared credentials file. It can name a role to assume.",
    "AWS_ENDPOINT_URL": "The endpoint of every AWS service. The twin sets it.",
    "AWS_ENDPOINT_URL_S3": "The endpoint of S3 alone.",
    "AWS_ENDPOINT_URL_SQS": "The endpoint of SQS alone.",
    "OPENLINEAGE_API_KEY": "The key that `forebay lineage --to` sends as a bearer token.",
    "NO_COLOR": "Any value turns colour off.",
}
"""Variables of the AWS SDKs (in boto3 and in Spark's S3 client alike), of OpenLineage's clients and of terminals."""
