"""Somebody with the analyst's role reads all that he may, and finds nothing that is declared personal, however it came."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forebay.lake.layout import OWN
from forebay.lake.objects import open_objects
from forebay.settings import MaintainSettings
from forebay.upkeep.maintenance.job import maintain
from tests.journey.story import Story, lines
from tests.operate.command import ran
from tests.walk import unpacked

SERVICE = """
name = "studio"
[privacy]
subject = "user_id"
secret = "{place}/secret"
vault = "{vault}"
vault_key = "{place}/key"
personal = [
  {{ path = "user_id", become = "token", vault = true }},
  {{ path = "email", become = "masked", vault = true }},
  {{ path = "ip", become = "truncated" }},
  {{ path = "birth_date", become = "truncated" }},
  {{ path = "phones", become = "token" }},
  {{ path = "friends.*.email", become = "masked" }},
  {{ path = "items.gift.email", become = "token" }},
  {{ path = "relay", become = "truncated" }},
  "contacts", "device", "real_name", "account.mail",
]
[[tables]]
name = "ticks"
where = {{ kind = "tick" }}
columns = [
  {{ name = "user_id" }}, {{ name = "email" }}, {{ name = "ip" }}, {{ name = "score", type = "long" }},
  {{ name = "birth_date", type = "date" }}, {{ name = "said", expression = "concat(user_id, email, ip)" }},
]
partitions = ["ip"]
dedupe = {{ by = ["user_id", "score"] }}
properties = {{ "delta.enableChangeDataFeed" = "true", "delta.checkpointInterval" = "2" }}
expectations = {{ few = {{ check = "score < 1000", on_violation = "quarantine" }} }}
[[tables]]
name = "flat"
where = {{ kind = "flat" }}
undeclared = {{ flatten = "_" }}
[[tables]]
name = "bought"
explode = "items"
columns = [{{ name = "buyer", path = "@parent.user_id" }}, {{ name = "mail", path = "@parent.email" }}, {{ name = "sku" }}]
[[tables]]
name = "profile_changes"
where = {{ kind = "profile" }}
mode = "merge"
columns = [{{ name = "user_id" }}, {{ name = "at", type = "long" }}, {{ name = "op" }}]
merge = {{ into = "profiles", keys = ["user_id"], sequence_by = ["at"], delete_when = "op = 'gone'", change_feed = true }}
[[rollups]]
name = "by_place"
tables = ["ticks"]
group_by = {{ ip = "ip", email = "email", user = "user_id" }}
columns = {{ ticks = "count(1)" }}
"""
TOLD = re.compile(rb"leak[0-9]{4}")
RELAYS = ("2002:cb00:714d::1", "2001:0:4136:e378:8000:63bf:34ff:8eb2")
"""Of IPv6, with an IPv4 address within."""
IPS, DAYS = ("203.0.113.77", "2001:db8:1:2:3::4"), ("1984-05-06", "1984-05-07T01:02:03Z")


class Planted:
    """Personal values that were put somewhere: each is another one."""

    def __init__(self) -> None:
        self.values: list[str] = []

    def __call__(self, form: str = "{}@example.org") -> str:
        self.values.append(form.format(f"leak{len(self.values):04}"))
        return self.values[-1]

    @property
    def signs(self) -> dict[bytes, str]:
        """What would tell one: itself, and what anybody can compute who guesses it."""
        found = {one.encode(): one for one in (*IPS, *DAYS, "2002:cb00", "34ff:8eb2")}
        for value in self.values:
            raw = value.encode()
            found[re.findall(TOLD, raw)[0]] = value
            found[b64encode(raw)[:12]] = value
            for how in (hashlib.sha256, hashlib.sha1, hashlib.md5):
                found |= {how(raw).digest()[:16]: value, how(raw).hexdigest()[:16].encode(): value}
        return found


def about(planted: Planted, number: int) -> dict[str, Any]:
    """Every field that is declared personal, in odd places."""
    return {
        "user_id": planted(),
        "eMail": planted(),
        "email": {"home": planted(), "work": [planted(), [planted()]]},
        "EMAIL": planted(),
        "email ": planted(),
        "\ufeff Email\u2003": planted(),
        "account": {"mail": planted(), "n": 1},
        "account_mail": planted(),
        "Account.Mail": planted(),
        "relay": RELAYS[number % 2],
        "ip": IPS[number % 2],
        "birth_date": DAYS[number % 2],
        "phones": [planted(), {"fax": planted()}],
        "friends": {"x": {"email": planted()}, "y": [{"email": planted(), "n": 1}]},
        "contacts": {planted(): {"n": 1}},
        "device": {"id": planted(), planted(): 1},
        "Real/Name": planted("{} O'Hara / Ltd"),
        "real\tname": planted(),
    }


def everything(planted: Planted, number: int) -> list[dict[str, Any]]:
    user = planted()
    op = "gone" if number == 2 else "put"
    return [
        {"kind": "tick", "score": number, **about(planted, number)},
        {"kind": "tick", "score": {"not": "a number"}, **about(planted, number)},
        {"kind": "tick", "score": 5000, **about(planted, number)},
        {"kind": "homeless", **about(planted, number)},
        {"kind": "flat", **about(planted, number)},
        {
            "kind": "order",
            **about(planted, number),
            "items": [{"sku": "s", "gift": {"email": planted()}}, {"sku": "t"}],
        },
        {"kind": "profile", "at": number, "op": op, **about(planted, number), "user_id": 4711},
        {"kind": "profile", "at": number, "op": "put", **about(planted, number)},
        {"kind": "profile", "at": None, "op": op, **about(planted, number), "user_id": user},
    ]


def as_php(records: list[dict[str, Any]]) -> bytes:
    return lines(records).replace(b"/", b"\\/")


def parquet_of(records: list[dict[str, Any]]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(records), buffer)
    return buffer.getvalue()


def put_odd_files(told: Story, planted: Planted) -> None:
    told.put("torn.json", lines(everything(planted, 1))[:-40] + f'\n{{"email": "{planted()}", broken\n'.encode())
    told.put("prose.json", f"From: {planted()}\nTo: {planted()}".encode())
    told.put(
        "text.json", f'"{planted()}"\n["{planted()}"]\n{{"email":"{planted()}"}} {{"email":"{planted()}"}}\n'.encode()
    )
    told.put("latin.json", b'{"kind":"tick","email":"' + planted().encode() + b'\xff"}\n')
    told.put("half.json.gz", gzip.compress(lines(everything(planted, 1)))[:-30])
    told.put("rows.csv", f"kind,email,EMail\ntick,{planted()},{planted()}\ntick,{planted()}\n".encode())
    told.put("blanks.csv", f"kind, email ,\tuser_id\ntick,{planted()},{planted()}\n".encode())
    told.put("nameless.csv", f"{planted()},{planted()}\n{planted()},7\n".encode())
    told.put(
        "twice.json", f'{{"kind":"tick","n":1,"n":2,"user_id":["{planted()}"],"email":"{planted()}"}}\n\n'.encode()
    )
    told.put("last.json", f'{{"kind":"tick","real_name":"{planted()}"}}\n  \n'.encode())
    told.put("header.csv", f"{(twice := planted())},{twice}\n1,2\n".encode())
    told.put("rows.parquet", parquet_of([{"kind": "tick", "email": planted(), "phones": [planted()]}]))
    told.put("cut.parquet", parquet_of([{"kind": "tick", "email": planted()}])[:-20])
    told.put("name.json", as_php(everything(planted, 1)), Metadata={"owner": planted()})


@pytest.mark.deep
def test_the_analyst_finds_nothing_that_is_declared_personal(told: Story, tmp_path: Path) -> None:
    planted = Planted()
    told.declare_private(SERVICE, tmp_path)
    for number in (0, 2):
        told.put(f"some{number}.json.gz", lines(everything(planted, number), gz=True))
        if number == 0:
            put_odd_files(told, planted)
        assert told.run().differences() == []
    where = ("--lake", told.lake)
    outputs = [
        ran("export", "profiles", "--to", f"{tmp_path}/export", "--service", told.service, *where),
        ran("history", "--all-tables", *where),
        ran("report", "--out", f"{tmp_path}/report.html", *where),
        ran("where", f"s3://{told.bucket}/in/torn.json", *where),
        *(ran("query", f"select * from {kept}", "--json", *where) for kept in ("ledger", "quarantine", "parked")),
        ran("privacy", "scan", "ticks", *where),
    ]
    ended = maintain(MaintainSettings(lake=told.lake, service=told.service), emit=told.events.append)
    assert [one.reason for one in ended.tables if one.reason] == []

    objects = open_objects(told.lake)
    names = [found.name for found in objects.found()]
    his = [name for name in names if not f"/{name}".count(f"/{OWN}")]
    assert {name.partition("/")[0] for name in his} == {
        "ticks",
        "flat",
        "bought",
        "profile_changes",
        "profiles",
        "by_place",
    }
    assert any("_change_data/" in name for name in his)
    assert any(name.endswith(".checkpoint.parquet") for name in his)
    seen = {name: name.encode() + unpacked(objects.read(name) or b"") for name in names}
    seen |= {str(path): unpacked(path.read_bytes()) for path in tmp_path.rglob("*") if path.is_file()}
    seen |= {f"output {at}": one.encode() for at, one in enumerate(outputs)}
    seen |= {f"event {at}": repr(one).encode() for at, one in enumerate(told.events)}
    signs = planted.signs
    assert [(name, signs[sign]) for name, content in seen.items() for sign in signs if sign in content] == []
