"""Does the lake's bucket refuse commits that are put without a condition?

Our own writers set the condition. An external writer with another log store does not, and overwrites a commit silently, unless
the bucket's policy denies it. The deployed lake has that policy; your own bucket, or another S3 server, may not.

In: the lake. Out: whether an unconditional PUT under a `_delta_log/` was denied; None if that is not known. The check sends
such a PUT, of an object that is not a commit, because that needs no permission to read policies. Each call sends one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from forebay.address import bucket_and_key, is_s3
from forebay.events import Emit, Event
from forebay.lake.layout import PROBES, table_path
from forebay.lake.s3_objects import s3_client


@dataclass(frozen=True, kw_only=True)
class CommitsUnguarded(Event):
    """An external writer that puts commits without a condition could overwrite ours in this lake silently. Give
    the bucket the policy that https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes-enforce.html shows."""

    lake: str


def is_guarded(lake: str, *, s3: Any) -> bool | None:
    # Named as a commit is, with twenty characters: the policy looks for such names.
    bucket, key = bucket_and_key(table_path(lake, f"{PROBES}/_delta_log/{uuid4().hex[:20]}.json"))
    try:
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
    except ClientError as refused:
        return True if refused.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 403 else None
    except BotoCoreError:
        return None
    try:
        s3.delete_object(Bucket=bucket, Key=key)
    except (ClientError, BotoCoreError):
        pass  # an empty object stays under _forebay/probe, which is harmless
    return False


def tell_unguarded(lake: str, *, emit: Emit, s3: Any = None) -> None:
    """Emits a warning at the start of a job. The job continues: our own writers are safe together without the policy."""
    if is_s3(lake) and is_guarded(lake, s3=s3 or s3_client()) is False:
        emit(CommitsUnguarded(lake=lake))
