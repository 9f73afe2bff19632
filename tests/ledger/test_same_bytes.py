"""A producer's retry on a bucket with a KMS key: the same bytes under another etag are loaded once."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from forebay.errors import Halt
from forebay.landed_file import LandedFile
from forebay.ledger.index import Index
from forebay.ledger.ledger import Ledger
from forebay.ledger.same_bytes import pairs_to_compare, same_bytes
from forebay.ledger.versions import Earlier, sort

KMS = {"ServerSideEncryption": "aws:kms"}
CRC64 = {"ChecksumType": "FULL_OBJECT"}


def version(n: int, size: int = 4, key: str = "in/a.json") -> LandedFile:
    return LandedFile("landing", key, size, f"{n:032x}", f"v{n}")


@dataclass
class S3:
    """Versions by id: their bytes, and what a HEAD says of them beside the usual."""

    there: dict[str, tuple[bytes, dict[str, Any]]]
    broken: Exception | None = None
    read: list[str] = field(default_factory=list)

    def head_object(self, *, ChecksumMode: str, **asked: str) -> dict[str, Any]:  # noqa: N803 (boto3's names)
        assert ChecksumMode == "ENABLED"
        content, said = self._found(asked)
        return {"ContentLength": len(content), "ETag": '"an etag"', **said}

    def get_object(self, **asked: str) -> dict[str, Any]:
        self.read.append(asked["VersionId"])
        return {"Body": io.BytesIO(self._found(asked)[0])}

    def _found(self, asked: dict[str, str]) -> tuple[bytes, dict[str, Any]]:
        if self.broken:
            raise self.broken
        if asked["VersionId"] not in self.there:
            raise ClientError({"Error": {"Code": "404"}, "ResponseMetadata": {"HTTPStatusCode": 404}}, "HeadObject")
        return self.there[asked["VersionId"]]


def same(s3: S3) -> bool:
    return bool(same_bytes([(version(2), version(1))], s3))


def test_versions_under_a_kms_key_are_compared_byte_by_byte() -> None:
    s3 = S3({"v1": (b"same", KMS), "v2": (b"same", KMS)})
    assert same(s3)
    assert sorted(s3.read) == ["v1", "v2"]
    assert not same(S3({"v1": (b"same", KMS), "v2": (b"else", KMS)}))


def test_checksums_of_the_whole_spare_the_reading() -> None:
    for other, wanted in (("abc=", True), ("xyz=", False)):
        s3 = S3(
            {
                "v1": (b"same", KMS | CRC64 | {"ChecksumCRC64NVME": "abc="}),
                "v2": (b"same", KMS | CRC64 | {"ChecksumCRC64NVME": other}),
            }
        )
        assert same(s3) is wanted
        assert s3.read == []


@pytest.mark.parametrize(
    "said",
    [
        {"ChecksumCRC32": "abc="},
        {"ChecksumSHA256": "abc=-3", "ChecksumType": "COMPOSITE"},
        {"ChecksumSHA256": "abc=", "ChecksumType": "COMPOSITE"},
    ],
    ids=str,
)
def test_short_checksums_and_those_of_parts_decide_nothing(said: dict[str, str]) -> None:
    assert not same(S3({"v1": (b"same", KMS | said), "v2": (b"else", KMS | said)}))


def test_etags_that_are_hashes_spare_all_of_it() -> None:
    s3 = S3({"v1": (b"same", {"ServerSideEncryption": "AES256"}), "v2": (b"else", {})})
    assert not same(s3)
    assert s3.read == []


def test_an_upload_in_parts_has_no_hash_for_an_etag() -> None:
    assert same(S3({"v1": (b"same", {"ETag": '"abc-2"'}), "v2": (b"same", {"ETag": '"abd-1"'})}))


def test_what_is_gone_is_the_same_as_nothing_and_what_does_not_answer_halts() -> None:
    assert not same(S3({"v2": (b"same", KMS)}))
    with pytest.raises(Halt, match="could not be compared with its earlier version"):
        same(S3({}, ReadTimeoutError(endpoint_url="s3")))


def test_only_files_of_the_same_key_and_size_and_with_other_etags_are_compared() -> None:
    files = [version(2), version(3, size=5), replace(version(4), etag=version(1).etag), version(5, key="in/b.json")]
    pairs = pairs_to_compare(files, {("landing", "in/a.json"): [version(1)]})
    assert [(a.version_id, b.version_id) for a, b in pairs] == [("v2", "v1"), ("v4", "v2")]
    assert [*pairs_to_compare([version(1)], {("landing", "in/a.json"): [version(1)]})] == []


@pytest.mark.parametrize("rule", ["append", "ignore", "replace"])
def test_a_retry_with_another_etag_is_a_duplicate(rule: Any) -> None:
    earlier = Earlier(version(1), {"file_id": version(1).file_id, "outcome": "loaded"})
    pair = (version(2).file_id, version(1).file_id)
    found = sort([version(2)], {("landing", "in/a.json"): [earlier]}, lambda key: rule, frozenset({pair}))
    assert [(entry.file, entry.outcome) for entry in found.left_out] == [(version(2), "duplicate")]
    assert found.fresh == ()
    in_one_batch = sort([version(1), version(2)], {}, lambda key: rule, frozenset({pair}))
    assert (in_one_batch.fresh, in_one_batch.left_out[0].outcome) == ((version(1),), "duplicate")


def test_the_ledger_compares_the_versions_of_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    s3 = S3({"v1": (b"same", KMS), "v2": (b"same", KMS), "v3": (b"else", KMS)})
    monkeypatch.setattr("forebay.ledger.ledger.client", lambda service: s3)
    ledger = Ledger(None, "/nowhere")  # type: ignore[arg-type]
    ledger._index = Index()
    found = ledger.sort([version(1), version(2), version(3), version(4, key="in/b.json")], lambda key: "append")
    assert found.fresh == (version(1), version(3), version(4, key="in/b.json"))
    assert [(entry.file, entry.outcome) for entry in found.left_out] == [(version(2), "duplicate")]
