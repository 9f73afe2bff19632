"""A notebook as people have it, which docs/source.md shows and a test runs."""

from __future__ import annotations

NOTEBOOK = """
    schema = "player string, level int, at timestamp, _corrupt_record string"
    events = (
        spark.readStream.format("s3-sqs")
        .option("fileFormat", "json")
        .option("queueUrl", "https://sqs.eu-west-1.amazonaws.com/123456789012/landed")
        .schema(schema)
        .load()
    )
"""
