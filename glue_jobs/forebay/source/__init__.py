"""Turns the queue into batches of file names: `spark.readStream.format("s3-sqs")`, in pure Python, and usable alone.

In: an SQS queue to which S3 announces its objects. Out: rows of bucket, key, size and so on, each file once, through crashes,
redeliveries and restarts. A failure becomes a value, or stops the query with one readable cause.

    from pyspark.sql import SparkSession

    from forebay.source.source import register

    spark = SparkSession.builder.getOrCreate()
    register(spark)
    files = (
        spark.readStream.format("s3-sqs")
        .option("queueUrl", "https://sqs.eu-west-1.amazonaws.com/123456789012/landed")
        .option("manifestPath", "s3://my-lake/landed/manifests")
        .load()
    )
    names = files.select("bucket", "key", "size", "event_time").writeStream.format("parquet")
    query = names.option("checkpointLocation", "s3://my-lake/landed/checkpoint").start("s3://my-lake/landed/names")

The rooms within, from the queue outwards:

* `option`, `options` what a user may write, declared once; `elsewhere` what other sources call it
* `queue` receive, delete, hold, count, and what each failure means
* `poll` one look at the queue, in parallel; `admission` which messages make the batch; `kept` those nobody understood
* `manifest` the list of a batch, written before Spark learns of it
* `visibility` what we hold stays out of sight; `deletion` what is committed leaves the queue
* `gather` what one trigger takes; `intake` all of it as one state, through crashes; `opening` its clients
* `drain` when there is nothing more to do; `shutdown` what is done when a process ends
* `events` what it tells, and which numbers of it become metrics
* `contents` with `fileFormat`: records instead of names, read where the tasks run; `columns` of the declared schema
* `source` the shape that Spark asks for, and how Spark drives it
"""
