"""Two persons are erased from everything that a service keeps, and from what landed; nobody finds them, and others keep all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake.exceptions import DeltaError

from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.operate.lake_view import LakeView
from forebay.privacy.secret import secret_at
from forebay.privacy.token import token_of
from forebay.privacy.vault import VALUES
from forebay.settings import MaintainSettings
from forebay.upkeep.maintenance.job import maintain
from tests.journey.story import Story, lines
from tests.operate.command import given, ran
from tests.walk import unpacked

SERVICE = """
name = "studio"
[privacy]
subject = "user_id"
secret = "{place}/secret"
vault = "{vault}"
vault_key = "{place}/key"
landing = "rewrite"
personal = [{{ path = "email", become = "masked", vault = true }}, {{ path = "device", vault = true }}]
[[tables]]
name = "ticks"
where = {{ kind = "tick" }}
columns = [{{ name = "user_id" }}, {{ name = "score", type = "long" }}]
expectations = {{ few = {{ check = "score < 1000", on_violation = "quarantine" }} }}
[[tables]]
name = "bought"
explode = "items"
columns = [{{ name = "buyer", path = "@parent.user_id" }}, {{ name = "sku" }}]
[[tables]]
name = "profile_changes"
where = {{ kind = "profile" }}
mode = "merge"
columns = [{{ name = "user_id" }}, {{ name = "at", type = "long" }}, {{ name = "op" }}]
merge = {{ into = "profiles", keys = ["user_id"], sequence_by = ["at"], delete_when = "op = 'gone'" }}
[[tables]]
name = "moves"
where = {{ kind = "move" }}
mode = "merge"
columns = [{{ name = "user_id" }}, {{ name = "at", type = "long" }}, {{ name = "to" }}]
merge = {{ into = "homes", keys = ["user_id"], sequence_by = ["at"], history = "scd2" }}
[[rollups]]
name = "by_user"
tables = ["ticks"]
group_by = {{ user_id = "user_id" }}
columns = {{ ticks = "count(1)" }}
[[rollups]]
name = "all_ticks"
tables = ["ticks"]
group_by = {{ one = "1" }}
columns = {{ ticks = "count(1)" }}
"""
TABLES = ("ticks", "bought", "profile_changes", "profiles", "moves", "homes", "by_user")
KEPT = ("_forebay/quarantine", "_forebay/parked", "_forebay/tombstones/profiles")
ERASED, OTHERS = ("anna-4711", "ben-4712"), ("cleo-4713", "dora-4714")


def of(user: str, number: int) -> list[dict[str, Any]]:
    """What a person leaves behind; each value names him."""
    about = {"user_id": user, "email": f"{user}@example.org", "device": {"id": f"device of {user}"}}
    gone = "gone" if user in (ERASED[1], OTHERS[1]) and number else "put"
    return [
        {"kind": "tick", "score": number, "note": f"note of {user}", **about},
        {"kind": "tick", "score": f"rescued of {user}", **about},
        {"kind": "tick", "score": 5000, **about},
        {"kind": "homeless", **about},
        {"kind": "order", "items": [{"sku": f"sku of {user}"}, {"sku": "common"}], **about},
        {"kind": "profile", "at": number, "op": gone, "name": f"name of {user}", **about},
        {"kind": "move", "at": number, "to": f"home {number} of {user}", **about},
    ]


def of_others(rows: list[dict[str, Any]]) -> list[str]:
    """Those that name no erased person."""
    texts = (json.dumps(row, default=str, sort_keys=True) for row in rows)
    return sorted(text for text in texts if not any(user in text for user in ERASED))


def kept(told: Story, vault: str) -> dict[str, bytes]:
    """Every object of the lake, of the vault and of the landing bucket, with what is packed in it."""
    places = [open_objects(place) for place in (told.lake, vault, f"s3://{told.bucket}")]
    names = [(objects, found.name) for objects in places for found in objects.found()]
    return {f"{objects.place}/{name}": unpacked(objects.read(name) or b"") for objects, name in names}


def telling(objects: dict[str, bytes], *wanted: str | bytes) -> list[str]:
    """Those that hold one of these."""
    signs = [one.encode() if isinstance(one, str) else one for one in wanted]
    return [name for name, content in objects.items() if any(one in content for one in signs)]


def due_now(told: Story) -> None:
    """As if the time travel of all tables were over."""
    done = open_objects(f"{told.lake}/_forebay/erased/studio")
    for found in [*done.found("done/")]:
        content = json.loads(done.read(found.name) or b"")
        done.write(found.name, json.dumps({**content, "due_at": content["at"]}).encode())


@pytest.mark.deep
def test_erased_persons_are_nowhere_and_others_keep_all(told: Story, tmp_path: Path) -> None:
    vault = told.declare_private(SERVICE, tmp_path)
    for number in range(2):
        everybody = [record for user in (*ERASED, *OTHERS) for record in of(user, number)]
        told.put(f"all{number}.json.gz", lines(everybody, gz=True))
        told.put(f"anna{number}.json", lines(of(ERASED[0], number + 2)))
        told.put(f"cleo{number}.json", lines(of(OTHERS[0], number + 2)))
    assert told.run().differences() == []
    tables = (*TABLES, *KEPT)
    before = {table: of_others(told.rows(table)) for table in tables}
    assert [table for table in tables if not before[table] or len(before[table]) == len(told.rows(table))] == []
    tokens = {token_of(user, secret_at(f"{tmp_path}/secret")) for user in ERASED}
    sealed = LakeView(vault).query(VALUES, "select * from t")
    keys = [key for row in sealed if set(row["subjects"]) & tokens for key in keys_of(row)]
    old = kept(told, vault)
    assert {name.split("/")[2] for name in telling(old, "4711@example.org", "device of")} == {told.bucket}
    assert telling(old, keys[0])

    where = ("--lake", told.lake, "--service", told.service)
    status, _, said = given(("privacy", "erase", *ERASED, "--yes", *where), "")
    assert status == 0, said
    told.put("late.json", lines(of(ERASED[0], 9)))
    told.announce_files(*rewritten(told))
    assert told.run().differences() == []
    due_now(told)
    ended = maintain(MaintainSettings(lake=told.lake, service=told.service), emit=told.events.append)
    assert [(one.table, one.detail) for one in ended.tables if one.reason] == []
    told.twin.client("s3").delete_object(Bucket=told.bucket, Key="in/late.json")

    left = kept(told, vault)
    assert telling(left, *ERASED) == []
    assert telling(left, *keys) == []
    assert [one for one in told.events if any(user in repr(one) for user in (*ERASED, *OTHERS))] == [], (
        "logs name nobody"
    )
    assert {table: of_others(told.rows(table)) for table in tables} == before
    assert {table: len(told.rows(table)) for table in tables} == {table: len(rows) for table, rows in before.items()}
    assert [row["ticks"] for row in told.rows("all_ticks")] == [len(told.rows("ticks"))]
    shown = [json.loads(line)["value"] for line in ran("privacy", "show", OTHERS[0], *where, "--json").splitlines()]
    assert shown.count(f"{OTHERS[0]}@example.org") * 2 == len(shown) >= 2 * 4 * 6
    (report,) = map(json.loads, ran("privacy", "report", "1", *where, "--json").splitlines())
    assert (report["is_gone"], [one["why"] for one in report["landing"] if not one["cleared"]]) == (True, [])
    for table in ("ticks", "profiles"):
        with pytest.raises(DeltaError):
            first_version(told, table)


def keys_of(row: dict[str, Any]) -> list[bytes]:
    """All of a row of the vault that could be opened with the key of KMS."""
    return [row["salt"], row["content"]]


def first_version(told: Story, table: str) -> int:
    then = LakeView(told.lake).table(table)
    assert then is not None
    then.load_as_version(0)
    return int(then.to_pyarrow_table().num_rows)


def rewritten(told: Story) -> list[LandedFile]:
    """What S3 announces once objects were written anew."""
    found = told.twin.client("s3").list_objects_v2(Bucket=told.bucket)["Contents"]
    return [LandedFile(told.bucket, one["Key"], one["Size"], one["ETag"].strip('"')) for one in found]
