"""The landing bucket and its announcements: a queue, and the places for what could not be delivered or taken.

The bucket and its topic are made (`landing_bucket`), or existing buckets are adopted: nothing of theirs changes. Then our queue
subscribes to their topics, or a rule of EventBridge fills it (`deliveries`), or their own queue is read. Everything is declared
in CloudFormation's own terms; a custom resource would need a Lambda, and rights over any bucket.
"""

from __future__ import annotations

from typing import Any

from aws_cdk import Aws, Duration
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.buckets import arn_of, name_of
from infra.deliveries import events_fill, subscribe, topic_arns_of
from infra.forms import listed
from infra.landing_bucket import bucket_that_announces
from infra.review import acknowledge
from infra.settings import Settings

MAX_RECEIVES = 5
DEAD_KEPT = Duration.days(14)
"""The most that SQS has."""
KEPT = Duration.days(13)
"""A message that moves to a dead-letter queue keeps its age, so that queue must keep messages longer than this one."""


def landing_buckets(settings: Settings) -> list[str]:
    return listed(settings.landing_bucket) or [name_of(settings, "landing")]


class Landing(Construct):
    """`undelivered` is None where the queue is somebody else's, and so is what cannot be delivered to it. With `deletions`, S3
    announces deleted objects, too."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        key: kms.IKey,
        access_logs: s3.IBucket,
        deletions: bool = False,
    ) -> None:
        super().__init__(scope, construct_id)
        self._settings, self._key = settings, key
        self.buckets = landing_buckets(settings)
        self.queue: sqs.IQueue
        self.dead: sqs.IQueue
        self.undelivered: sqs.IQueue | None = None
        if settings.landing_queue:
            self.queue = sqs.Queue.from_queue_arn(self, "Queue", settings.landing_queue)
            self.dead = sqs.Queue.from_queue_arn(self, "Dead", settings.landing_dead_queue)
            return
        self.dead, self.undelivered, queue = self._queues()
        self.queue = queue
        if settings.landing_eventbridge:
            events_fill(self, queue, self.undelivered, settings=settings, deletions=deletions)
            return
        if not settings.landing_bucket:
            bucket_that_announces(self, settings=settings, key=key, access_logs=access_logs, deletions=deletions)
        subscribe(self, queue, self.undelivered, topics=topic_arns_of(settings))

    @property
    def bucket_arns(self) -> list[str]:
        return [arn_of(name) for name in self.buckets]

    @property
    def queues(self) -> tuple[sqs.IQueue, ...]:
        return self.queue, self.dead, *([self.undelivered] if self.undelivered else [])

    @property
    def dead_urls(self) -> str:
        return ",".join(queue.queue_url for queue in self.queues[1:])

    def _queues(self) -> tuple[sqs.Queue, sqs.Queue, sqs.Queue]:
        ours = f"arn:{Aws.PARTITION}:sqs:{Aws.REGION}:{Aws.ACCOUNT_ID}:{self._settings.name}-arrivals"
        dead = self._queue("Dead", "arrivals-dead", retention_period=DEAD_KEPT)
        # By its name: the queue itself waits for this one.
        only_ours = {"redrivePermission": "byQueue", "sourceQueueArns": [ours]}
        dead.node.default_child.add_property_override("RedriveAllowPolicy", only_ours)  # type: ignore[union-attr]
        undelivered = self._queue("Undelivered", "arrivals-undelivered", retention_period=DEAD_KEPT)
        for end in (dead, undelivered):
            acknowledge(end, "SQS3", "it is a dead-letter queue itself")
        queue = self._queue(
            "Queue",
            "arrivals",
            retention_period=KEPT,
            visibility_timeout=Duration.minutes(5),
            receive_message_wait_time=Duration.seconds(20),
            dead_letter_queue=sqs.DeadLetterQueue(queue=dead, max_receive_count=MAX_RECEIVES),
        )
        return dead, undelivered, queue

    def _queue(self, construct_id: str, name: str, **more: Any) -> sqs.Queue:
        return sqs.Queue(
            self,
            construct_id,
            queue_name=f"{self._settings.name}-{name}",
            encryption=sqs.QueueEncryption.KMS,
            encryption_master_key=self._key,
            enforce_ssl=True,
            **more,
        )
