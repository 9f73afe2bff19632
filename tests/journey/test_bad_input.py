"""Whatever is dropped into the bucket, it is kept with its reason, and everything else of the batch lands."""

from __future__ import annotations

import gzip
import zlib
from datetime import timedelta

import pytest

from tests.journey.story import Story, event, lines

GOOD = lines([event("alpha", n) for n in range(3)])


def bomb() -> bytes:
    """Ten gigabytes of spaces, in ten megabytes: gzip members may follow one another, so one of them is enough to make."""
    packer = zlib.compressobj(9, wbits=31)
    member = packer.compress(b" " * (32 << 20)) + packer.flush()
    return member * 320


def raw(text: str | bytes) -> bytes:
    """A good record, the bad one in line 2, and a good one after it."""
    bad = text.encode() if isinstance(text, str) else text
    return lines([event("alpha", 1)]) + bad + b"\n" + lines([event("alpha", 2)])


IN_ALPHA = '{"game": "alpha", '

BAD_FILES = {
    "torn.json.gz": (gzip.compress(GOOD * 1000)[:-20], "corrupt-archive"),
    "bomb.json.gz": (bomb(), "expansion-bomb"),
    "picture.json": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, "not-json"),
    "error-page.json": (b"<!DOCTYPE html>\n<html><body>503 Service Unavailable</body></html>\n", "not-json"),
}

BAD_RECORDS = {
    "one-line-of-50-megabytes.json": (raw(IN_ALPHA + '"x": "' + "y" * 50_000_000 + '"}'), "record-too-large"),
    "ten-thousand-levels.json": (raw(IN_ALPHA + '"x": ' + "[" * 10_000 + "]" * 10_000 + "}"), "too-deep"),
    "broken.json": (raw(IN_ALPHA + '"x": '), "not-json"),
    "nul-between.json": (raw(IN_ALPHA.encode() + b'\x00"x": 1}'), "not-json"),
    "not-a-number.json": (raw(IN_ALPHA + '"x": NaNaN}'), "not-json"),
    "bytes-that-are-no-text.json": (raw(IN_ALPHA.encode() + b'"x": "\xff\xfe"}'), "not-utf8"),
    "a-dirty-name.json": (raw('{"game": "../../etc"}'), "bad-table-name"),
}

LEFT_BESIDE = {
    ".x.json": "hidden",
    "_started_7": "commit-marker",
    "_committed_7": "commit-marker",
    "_SUCCESS": "success-marker",
}

ODD_BUT_GOOD = {
    "lone-surrogate.json": raw(IN_ALPHA + '"x": "\\ud800"}'),
    "duplicate-keys.json": raw(IN_ALPHA + '"x": 1, "x": 2}'),
    "a-huge-integer.json": raw(IN_ALPHA + '"level": 123456789012345678901234567890}'),
    "escaped-nul.json": raw(IN_ALPHA + '"x": "a\\u0000b"}'),
}


def test_every_bad_file_and_record_is_kept_with_its_reason_and_all_others_land(told: Story) -> None:
    for name, (content, _) in {**BAD_FILES, **BAD_RECORDS}.items():
        told.put(name, content)
    for name, content in ODD_BUT_GOOD.items():
        told.put(name, content)
    for name in LEFT_BESIDE:
        told.put(name, GOOD)
    for n in range(3):
        told.put(f"good-{n}.json", GOOD)
    s3 = told.twin.client("s3")
    told.put("deleted-since.json", GOOD)
    s3.delete_object(Bucket=told.bucket, Key="in/deleted-since.json")
    told.put("replaced-since.json", GOOD)
    s3.put_object(Bucket=told.bucket, Key="in/replaced-since.json", Body=GOOD + GOOD)

    sums = told.run()

    assert sums.differences() == []
    ledger = {
        row["key"].removeprefix("in/"): row
        for row in told.rows("_forebay/ledger", "select key, outcome, reason, written, quarantined from t")
    }
    assert {name: (ledger[name]["outcome"], ledger[name]["reason"]) for name in BAD_FILES} == {
        name: ("unreadable", reason) for name, (_, reason) in BAD_FILES.items()
    }
    assert {name: (ledger[name]["written"], ledger[name]["quarantined"]) for name in BAD_RECORDS} == dict.fromkeys(
        BAD_RECORDS, (2, 1)
    )
    assert {name: ledger[name]["written"] for name in ODD_BUT_GOOD} == dict.fromkeys(ODD_BUT_GOOD, 3)
    assert {ledger[f"good-{n}.json"]["written"] for n in range(3)} == {3}
    assert [ledger[name]["outcome"] for name in ("deleted-since.json", "replaced-since.json")] == ["missing"] * 2
    assert {name: (ledger[name]["outcome"], ledger[name]["reason"]) for name in LEFT_BESIDE} == {
        name: ("ignored", rule) for name, rule in LEFT_BESIDE.items()
    }
    assert sums.files["ignored"] == len(LEFT_BESIDE)
    assert told.waiting() == (0, 0)

    kept = told.rows(
        "_forebay/quarantine", "select key, line, byte_offset, reason, record from t where line is not null"
    )
    by_name = {row["key"].removeprefix("in/"): row for row in kept}
    assert {name: row["reason"] for name, row in by_name.items()} == {
        name: reason for name, (_, reason) in BAD_RECORDS.items()
    }
    begins = len(lines([event("alpha", 1)]))
    assert {(row["line"], row["byte_offset"]) for row in kept} == {(2, begins)}
    assert all(0 < len(row["record"]) <= 64 << 10 for row in kept)
    assert by_name["a-dirty-name.json"]["record"].strip() == '{"game": "../../etc"}'
    of_files = told.rows("_forebay/quarantine", "select key, reason, record from t where line is null")
    assert {row["key"].removeprefix("in/") for row in of_files} == set(BAD_FILES)


def test_a_number_that_no_type_holds_is_kept_digit_by_digit(told: Story) -> None:
    told.put("a.json", ODD_BUT_GOOD["a-huge-integer.json"])
    told.run()
    # `level` is declared, and read from another field.
    (odd,) = told.rows("alpha", "select level, level_field from t where _line = 2")
    assert (odd["level"], odd["level_field"]) == (None, "123456789012345678901234567890")


@pytest.mark.deep
def test_a_file_that_s3_did_not_give_at_first_is_loaded_by_the_job_itself(
    told: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    told.put("archived.json", GOOD, StorageClass="GLACIER")
    told.put("good.json", GOOD)
    sums = told.run()
    assert (sums.files, sums.rows["alpha"]) == ({"loaded": 1, "unavailable": 1}, 3)
    assert told.run().files == {"loaded": 1, "unavailable": 1}  # it is not due yet, and a drain does not wait for it
    request = {"Days": 1, "GlacierJobParameters": {"Tier": "Standard"}}
    told.twin.client("s3").restore_object(Bucket=told.bucket, Key="in/archived.json", RestoreRequest=request)
    monkeypatch.setattr("forebay.ledger.withheld.FIRST_PAUSE", timedelta(0))
    sums = told.run()
    assert sums.differences() == []
    assert (sums.files, sums.rows["alpha"]) == ({"loaded": 2}, 6)
