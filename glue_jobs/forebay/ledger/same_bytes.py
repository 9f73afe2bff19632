"""Do two versions of a key hold the same bytes, where their etags do not say so?

An etag is a hash of the content only for an object that was put at once, without a KMS key. With one, a producer's retry has
another etag. So versions of one key and one size are compared by S3's own checksums of the whole content, else byte by byte.
That is rare: a key that was put again, with as many bytes as before.

In: pairs of versions. Out: those pairs that are the same. A version that is gone, or that we may not read, is the same as
none: the other one is loaded. Where S3 does not answer, `Halt`, because a repeated batch must not decide otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from forebay.errors import Halt
from forebay.landed_file import LandedFile

__all__ = ["Pair", "pairs_to_compare", "same_bytes"]

Pair = tuple[str, str]
"""Two file ids."""
COMPARED = 4
"""Versions before it with which a file is compared: a retry follows soon, and a key may have thousands of versions."""
PAIRS_AT_ONCE = 16
CHUNK = 1 << 20
WHOLE = ("ChecksumSHA256", "ChecksumSHA1", "ChecksumCRC64NVME")
"""Checksums that are long enough. The CRC-32 that clients usually send is not: it would lose a file in four billion."""
NOT_READABLE = (400, 403, 404, 405, 410, 412)


def pairs_to_compare(
    files: Sequence[LandedFile], earlier: Mapping[tuple[str, str], Sequence[LandedFile]]
) -> Iterator[tuple[LandedFile, LandedFile]]:
    """Each file of a batch with the loaded versions of its key, and with those before it in the batch."""
    before: dict[tuple[str, str], list[LandedFile]] = {key: list(seen) for key, seen in earlier.items()}
    for file in files:
        rivals = before.setdefault((file.bucket, file.key), [])
        for rival in rivals[-COMPARED:]:
            if rival.file_id != file.file_id and rival.size == file.size and rival.etag != file.etag:
                yield file, rival
        rivals.append(file)


def same_bytes(pairs: Iterable[tuple[LandedFile, LandedFile]], s3: Any) -> frozenset[Pair]:
    compare = _Compare(s3)
    with ThreadPoolExecutor(PAIRS_AT_ONCE, "compare") as threads:
        asked = [*pairs]
        found = threads.map(compare, asked)
        return frozenset((a.file_id, b.file_id) for (a, b), same in zip(asked, found, strict=True) if same)


class _Compare:
    def __init__(self, s3: Any) -> None:
        self._s3 = s3

    def __call__(self, pair: tuple[LandedFile, LandedFile]) -> bool:
        try:
            heads = [self._s3.head_object(**_request(file), ChecksumMode="ENABLED") for file in pair]
            if all(_etag_is_a_hash(head) for head in heads):
                return False  # and they differ, or nobody would ask
            if heads[0]["ContentLength"] != heads[1]["ContentLength"]:
                return False
            kinds = [kind for kind in WHOLE if all(_of_the_whole(head, kind) for head in heads)]
            if kinds:
                return bool(heads[0][kinds[0]] == heads[1][kinds[0]])
            return self._read_alike(pair)
        except ClientError as refused:
            if refused.response.get("ResponseMetadata", {}).get("HTTPStatusCode") in NOT_READABLE:
                return False
            raise self._unknown(pair, refused) from refused
        except (BotoCoreError, OSError) as failed:
            raise self._unknown(pair, failed) from failed

    def _read_alike(self, pair: tuple[LandedFile, LandedFile]) -> bool:
        one, other = (self._s3.get_object(**_request(file))["Body"] for file in pair)
        try:
            while True:
                content = one.read(CHUNK)
                if content != other.read(CHUNK):
                    return False
                if not content:
                    return True
        finally:
            one.close()
            other.close()

    @staticmethod
    def _unknown(pair: tuple[LandedFile, LandedFile], failed: Exception) -> Halt:
        return Halt(f"{pair[0].uri} could not be compared with its earlier version: {failed}; the batch is repeated")


def _request(file: LandedFile) -> dict[str, Any]:
    request: dict[str, Any] = {"Bucket": file.bucket, "Key": file.key}
    if file.version_id:
        return {**request, "VersionId": file.version_id}
    return {**request, "IfMatch": f'"{file.etag}"'} if file.etag else request


def _etag_is_a_hash(head: Mapping[str, Any]) -> bool:
    encrypted = head.get("ServerSideEncryption", "AES256") != "AES256" or "SSECustomerAlgorithm" in head
    return not encrypted and "-" not in head.get("ETag", "")


def _of_the_whole(head: Mapping[str, Any], kind: str) -> bool:
    """A composite checksum depends on the parts of an upload, too."""
    return kind in head and "-" not in head[kind] and head.get("ChecksumType", "FULL_OBJECT") == "FULL_OBJECT"
