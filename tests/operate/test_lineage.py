"""`forebay lineage`: batches as OpenLineage events, which fit the published schemas, and their way to an endpoint."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

from forebay.declaration.kept.in_force import keep_in_force, kept_services
from forebay.declaration.loading import parse_service
from forebay.errors import InvalidConfiguration
from forebay.operate.lake_view import LakeView
from forebay.operate.looking import openlineage
from forebay.operate.looking.files import FileChoice
from forebay.operate.looking.lineage import FACETS, lineage_of
from forebay.operate.looking.openlineage import Endpoint, Refused
from tests.operate.command import failed, given, ran
from tests.operate.ledger import AT, entry, write_ledger

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = [json.loads(file.read_text()) for file in (Path(__file__).parent / "openlineage").glob("*.json")]
PUBLISHED: Registry[Any] = Registry().with_resources((one["$id"], Resource.from_contents(one)) for one in SCHEMAS)
OF_BATCH = {"batch": "1", "generation": "g1", "declarations": "v1"}
WIDE = ("--since", "2026-01-01")


def facets_in(value: Any) -> Iterator[dict[str, Any]]:
    """Every facet, wherever in an event it is."""
    if isinstance(value, dict):
        yield from (value,) if "_schemaURL" in value else ()
        for part in value.values():
            yield from facets_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from facets_in(part)


def must_fit(event: dict[str, Any]) -> None:
    """The published schema of the event, and that of each facet: the schema of an event does not name them."""
    for part, schema in [(event, event["schemaURL"]), *((facet, facet["_schemaURL"]) for facet in facets_in(event))]:
        Draft202012Validator({"$ref": schema}, registry=PUBLISHED, format_checker=FormatChecker()).validate(part)


def events(lake: Path | str, *more: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in ran("lineage", "--lake", str(lake), *(more or WIDE)).splitlines()]
    for event in found:
        must_fit(event)
    return found


def told(event: dict[str, Any]) -> tuple[str, str, list[str], list[str]]:
    datasets = ([f"{one['namespace']}/{one['name']}" for one in event[side]] for side in ("inputs", "outputs"))
    return (event["eventType"], event["job"]["name"], *datasets)


def declare(lake: Path, name: str, feeds: str) -> None:
    keep_in_force(str(lake), parse_service({"service.toml": f'name = "{name}"\n{feeds}\n[[tables]]\nname = "alpha"\n'}))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A batch of two feeds, which fill one table each and share another; a file that is torn, and one that was known."""
    declare(tmp_path, "games", 'feeds = [{ name = "a", prefix = "in/a/" }, { name = "b", prefix = "in/ü b/" }]')
    write_ledger(
        tmp_path,
        entry("in/a/1", tables={"alpha": 2, "shared": 1}, records=4, quarantined=1),
        entry("in/a/2", tables={"alpha": 3, "shared": 0}, size=50),
        entry("in/ü b/1", tables={"beta": 1, "shared": 1}, records=3, parked=1),
        entry("in/torn", outcome="unreadable", reason="corrupt"),
        entry("in/a/3", outcome="duplicate"),
    )
    deep = pa.struct([("x", pa.float64()), ("tags", pa.list_(pa.string())), ("by", pa.map_(pa.string(), pa.int64()))])
    write_deltalake(tmp_path / "alpha", pa.table({"ö": [1], "at": pa.array([AT]), "deep": pa.array([None], deep)}))
    return tmp_path


def test_an_input_stands_beside_the_tables_that_its_files_filled_and_no_others(lake: Path) -> None:
    a, b, rest = "s3://landing/in/a", "s3://landing/in/ü b", "s3://landing//"
    runs = {
        "games._forebay/parked": [b],
        "games._forebay/quarantine": [rest, a],
        "games.alpha": [a],
        "games.beta": [b],
        "games.shared": [a, b],
    }
    within = [
        (state, name, inputs, [f"file/{lake}/{name.removeprefix('games.')}"])
        for name, inputs in runs.items()
        for state in ("START", "COMPLETE")
    ]
    assert [*map(told, events(lake))] == [("START", "games", [], []), *within, ("COMPLETE", "games", [], [])]


def test_the_counts_and_columns_are_those_of_the_ledger_and_of_the_table(lake: Path) -> None:
    by_job = {event["job"]["name"]: event for event in events(lake) if event["eventType"] == "COMPLETE"}

    def numbers(name: str) -> tuple[list[tuple[int, ...]], int]:
        read = [one["inputFacets"]["inputStatistics"] for one in by_job[name]["inputs"]]
        written = by_job[name]["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"]
        return [(one["fileCount"], one["rowCount"], one["size"]) for one in read], written

    assert numbers("games.alpha") == ([(2, 7, 150)], 5)
    assert numbers("games.shared") == ([(1, 4, 100), (1, 3, 100)], 2)
    assert numbers("games._forebay/quarantine") == ([(1, 0, 100), (1, 4, 100)], 2)
    columns = by_job["games.alpha"]["outputs"][0]["facets"]["schema"]["fields"]
    assert columns[:2] == [{"name": "ö", "type": "long"}, {"name": "at", "type": "timestamp"}]
    assert columns[2] == {
        "name": "deep",
        "type": "struct",
        "fields": [
            {"name": "x", "type": "double"},
            {"name": "tags", "type": "array", "fields": [{"name": "_element", "type": "string"}]},
            {
                "name": "by",
                "type": "map",
                "fields": [{"name": "key", "type": "string"}, {"name": "value", "type": "long"}],
            },
        ],
    }
    assert "schema" not in by_job["games.beta"]["outputs"][0]["facets"], "this table is gone"


def test_a_run_has_the_times_of_its_batch_and_an_id_that_never_changes(lake: Path) -> None:
    first, again = events(lake), events(f"file:{lake}/")
    assert first == again
    whole, table = ([e for e in first if e["job"]["name"] == name] for name in ("games", "games.alpha"))
    for start, complete in (whole, table):
        assert start["run"] == complete["run"]
        assert start["eventTime"] == "2026-11-21T10:00:50+00:00"
        assert complete["eventTime"] == "2026-11-21T10:01:00+00:00"
        assert {one["key"]: one["value"] for one in start["run"]["facets"]["tags"]["tags"]} == OF_BATCH
        assert start["run"]["facets"]["processing_engine"]["name"] == "forebay", "DataHub refuses events without it"
        assert "parent" not in start["run"]["facets"], "DataHub refuses events with it"
    assert len({event["run"]["runId"] for event in first}) == len(first) / 2


def test_every_facet_is_of_a_schema_that_is_published() -> None:
    assert {f"https://openlineage.io/spec/facets/{place}.json" for place in FACETS.values()} == {
        one["$id"] for one in SCHEMAS if "/facets/" in one["$id"]
    }


def test_an_event_that_lacks_something_does_not_fit(lake: Path) -> None:
    event = events(lake)[2]
    del event["outputs"][0]["facets"]["storage"]["storageLayer"]
    with pytest.raises(Exception, match="storageLayer"):
        must_fit(event)


def test_batches_are_chosen_and_told_the_oldest_first(tmp_path: Path) -> None:
    days = [timedelta(days=n) for n in (1, 0, 2)]
    write_ledger(tmp_path, *(entry(f"in/{n}", at=AT + day, batch=n, tables={"t": 1}) for n, day in enumerate(days)))
    write_ledger(tmp_path, entry("in/x", batch=0, service="other", outcome="ignored"))
    write_ledger(tmp_path, entry("in/y", batch=0, generation="g2", claimed_at=None, size=None, tables={"t": 1}))

    def batches(*more: str) -> list[str]:
        complete = [e for e in events(tmp_path, *more) if e["eventType"] == "COMPLETE" and not e["outputs"]]
        of = ({one["key"]: one["value"] for one in e["run"]["facets"]["tags"]["tags"]} for e in complete)
        return [f"{e['job']['name']} {one['generation']} {one['batch']}" for e, one in zip(complete, of, strict=True)]

    everything = ["games g1 1", "games g2 0", "other g1 0", "games g1 0", "games g1 2"]
    assert batches(*WIDE) == everything
    assert batches("--since", "2026-11-21T10:01:01") == everything[3:]
    assert batches("--until", "2026-11-22") == everything[:3], "a day is looked at, up to that time"
    assert batches("--batch", "2") == ["games g1 2"]
    assert batches(*WIDE, "--of", "other") == ["other g1 0"]
    assert "did you mean other?" in failed(2, "lineage", "--lake", str(tmp_path), "--of", "othr")
    assert "is not after --since" in failed(2, "lineage", "--lake", str(tmp_path), *WIDE, "--until", "2025-01-01")
    (moved,) = [e for e in events(tmp_path, "--batch", "2", "--namespace", "prod") if e["eventType"] == "START"][:1]
    assert moved["job"] | {"facets": 0} == {"namespace": "prod", "name": "games", "facets": 0}


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        (lambda lake: (lake / "_forebay" / "services").mkdir(parents=True), "no batch has ended yet"),
        (write_ledger, "no batch ended since"),
        (lambda lake: write_ledger(lake, entry("in/a")), "no batch ended since"),
    ],
    ids=["no ledger yet", "an empty ledger", "long ago"],
)
def test_without_batches_nothing_is_printed_and_the_reason_is_told(
    prepare: Callable[[Path], None], says: str, tmp_path: Path
) -> None:
    prepare(tmp_path)
    status, out, err = given(("lineage", "--lake", str(tmp_path)), "")
    assert (status, out) == (0, "")
    assert says in err


def test_a_lake_that_nobody_wrote_to_and_a_batch_that_is_not_there_are_told(lake: Path) -> None:
    assert "is it spelled correctly?" in failed(2, "lineage", "--lake", str(lake / "alpha"))
    assert "batch 7 is not in the ledger: `forebay history` lists" in failed(
        1, "lineage", "--lake", str(lake), "--batch", "7"
    )


def test_tables_in_s3_are_named_by_bucket_and_path_and_each_service_by_its_own_feeds(s3: str) -> None:
    for name, bucket in (("games", "drops"), ("shop", "")):
        feeds = f'feeds = [{{ name = "it\'s", prefix = "in/", bucket = "{bucket}" }}]'.replace("it's", name)
        declare("s3://studio-lake/my lake", name, feeds)  # type: ignore[arg-type]
    storage = {
        "AWS_ENDPOINT_URL": s3,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "eu-west-1",
        "AWS_S3_ALLOW_UNSAFE_RENAME": "1",
    }
    rows = [
        entry("in/a", service=name, tables={"t": 1}, bucket=b) for name in ("games", "shop") for b in ("drops", "x")
    ]
    write_ledger("s3://studio-lake/my lake", *rows, storage_options=storage)
    found = {told(e)[1]: told(e)[2:] for e in events("s3a://studio-lake/my lake/") if e["outputs"]}
    table = ["s3://studio-lake/my lake/t"]
    assert found == {
        "games.t": (["s3://drops/in", "s3://x//"], table),
        "shop.t": (["s3://drops/in", "s3://x/in"], table),
    }


class Marquez(BaseHTTPRequestHandler):
    """Answers with what `answers` begins with, then with 201; keeps what it took."""

    protocol_version = "HTTP/1.1"
    answers: list[tuple[int, str]]
    took: list[dict[str, Any]]
    asked: list[tuple[str, str, str]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        key = self.headers.get("Authorization") or self.headers.get("Proxy-Authorization", "")
        self.asked.append((self.path, key, self.headers["Content-Type"]))
        status, text = self.answers.pop(0) if self.answers else (201, "")
        if status < 300:
            self.took.append(json.loads(body))
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", text)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def marquez(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Marquez]]:
    monkeypatch.setattr(openlineage, "FIRST_WAIT_S", 0)
    monkeypatch.delenv("OPENLINEAGE_API_KEY", raising=False)
    handler = type("OneMarquez", (Marquez,), {"answers": [], "took": [], "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    handler.address = f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield handler
    server.shutdown()
    server.server_close()


def test_events_are_sent_in_order_with_the_key_of_the_environment(
    lake: Path, marquez: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", " secret-7\n")
    to = ("lineage", "--lake", str(lake), *WIDE, "--to")
    where = f"{marquez.address}/api/v1/lineage"
    assert ran(*to, marquez.address) == f"sent 12 events of 1 batch to {where}\n"
    assert marquez.took == events(lake)
    assert set(marquez.asked) == {("/api/v1/lineage", "Bearer secret-7", "application/json")}
    said = ran(*to, f"{marquez.address}/openapi/openlineage/api/v1/lineage", "--json")
    assert json.loads(said) == {"to": marquez.asked[-1][0].join((marquez.address, "")), "events": 12, "batches": 1}
    assert marquez.asked[-1][0] == "/openapi/openlineage/api/v1/lineage"


def test_what_may_pass_is_tried_again(lake: Path, marquez: Any) -> None:
    marquez.answers += [(201, ""), (429, "slowly"), (503, ""), (500, "")]
    ran("lineage", "--lake", str(lake), *WIDE, "--to", marquez.address)
    assert marquez.took == events(lake)


def test_the_proxy_of_the_environment_is_asked(marquez: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", marquez.address.replace("http://", "me:word@"))
    Endpoint("http://marquez.invalid", "").send({})
    assert marquez.asked == [("http://marquez.invalid/api/v1/lineage", "Basic bWU6d29yZA==", "application/json")]
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    Endpoint(marquez.address, "").send({})
    assert marquez.asked[1] == ("/api/v1/lineage", "", "application/json")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((401, "no key\n given"), "answered 401: no key given; sent 13 events of 1 batch before"),
        ((302, "http://elsewhere/login"), "answered 302, and names another address: http://elsewhere/login"),
        ((422, "\x1b[2J" + "x" * 1000), "answered 422: \\x1b[2J" + "x" * 296 + ";"),
    ],
)
def test_a_refusal_says_what_was_sent_and_how_to_continue(
    answer: tuple[int, str], says: str, lake: Path, marquez: Any
) -> None:
    write_ledger(lake, entry("in/later", at=AT + timedelta(hours=1), batch=2))
    marquez.answers += [*[(200, "")] * 13, answer]
    said = failed(1, "lineage", "--lake", str(lake), *WIDE, "--to", marquez.address)
    assert says in said
    assert "continue with --since 2026-11-21T11:01:00: an event that is sent twice changes nothing" in said
    assert said.count("\n") == 1
    assert len(marquez.took) == 13
    ran("lineage", "--lake", str(lake), "--since", "2026-11-21T11:01:00", "--to", marquez.address)
    assert marquez.took[13:] == events(lake, "--since", "2026-11-21T11:01:00")


def test_an_endpoint_that_never_answers_ends_the_command(
    lake: Path, marquez: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(openlineage.ONCE, "timeout", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for port in (1, silent.getsockname()[1]):
            said = failed(1, "lineage", "--lake", str(lake), *WIDE, "--to", f"http://127.0.0.1:{port}")
            assert f"http://127.0.0.1:{port}/api/v1/lineage does not answer: " in said
            assert said.count("\n") == 1
    monkeypatch.undo()
    monkeypatch.setattr(openlineage, "FIRST_WAIT_S", 0)
    marquez.answers += [(500, "Unable to determine orchestrator")] * 4
    with pytest.raises(Refused, match="answered 500: Unable to determine orchestrator"):
        Endpoint(marquez.address, "").send({})


@pytest.mark.parametrize(
    ("address", "key", "says"),
    [
        ("marquez:5000", "", "is not an HTTP address"),
        ("events.ndjson", "", "is not an HTTP address"),
        ("http://", "", "is not an HTTP address"),
        ("http://[::1", "", "is not an HTTP address"),
        ("https://me:secret-7@marquez", "", "contains a password"),
        ("http://marquez", "secret-7\r\nX-A: b", "no HTTP header"),
        ("http://marquez", "secret-7ü", "no HTTP header"),
    ],
)
def test_an_address_or_a_key_that_cannot_be_is_refused_and_the_key_is_not_shown(
    address: str, key: str, says: str
) -> None:
    with pytest.raises(InvalidConfiguration, match=says) as refused:
        Endpoint(address, key)
    assert "secret-7" not in str(refused.value)


def test_the_events_in_the_guide_are_those_that_the_command_prints(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "lineage.md").read_text()
    (shown,) = re.findall(r"```json\n(.*?)```", text, re.S)
    declare(tmp_path, "shop", 'feeds = [{ name = "clicks", prefix = "in/clicks/" }]')
    write_ledger(
        tmp_path,
        *(
            entry(f"in/clicks/{n}", service="shop", batch=812, bucket="studio-drops", tables={"clicks": 20})
            for n in (1, 2)
        ),
    )
    rows = pa.table({"user": ["u"], "at": pa.array([AT])})
    write_deltalake(tmp_path / "clicks", rows)
    (one,) = lineage_of(LakeView(str(tmp_path)), FileChoice())
    assert f"sent {len(one.events)} events of 1 batch to http://marquez:5000/api/v1/lineage" in text
    event = json.dumps(one.events[2])
    for here, there in ((f"file:{tmp_path}", "s3://studio-lake"), (str(tmp_path / "clicks"), "clicks")):
        event = event.replace(here, there)
    made = json.loads(event.replace('"namespace": "file"', '"namespace": "s3://studio-lake"'))
    guide = json.loads(shown)
    for told_of in (made, guide):
        told_of["run"]["runId"] = ""
    assert guide == made
    must_fit(json.loads(shown))


def test_a_file_is_counted_once_in_the_feed_that_its_declarations_give_it(tmp_path: Path) -> None:
    prefixes = ["", "in/", "in/a", "in/a/", "in/a'b/", "in/a%/", "in/ä_/", "IN/"]
    feeds = [f'{{ name = "f{n}", prefix = "{prefix}" }}' for n, prefix in enumerate(prefixes)]
    feeds += ['{ name = "own", prefix = "in/a", bucket = "drops" }']
    for name, some in (("games", feeds), ("shop", feeds[2:4])):
        declare(tmp_path, name, f"feeds = [{', '.join(some)}]")
    keys = [f"{prefix}{rest}" for prefix in (*prefixes, "in/a%x/", "in/äb/", "/in/") for rest in ("1", "'--")]
    rows = [
        entry(key, bucket=bucket, service=name, batch=n % 3, tables={f"t{n % 2}": n + 1, "all": 1})
        for name in ("games", "shop")
        for n, (bucket, key) in enumerate((bucket, key) for bucket in ("drops", "x") for key in keys)
    ]
    write_ledger(tmp_path, *rows)
    wanted, found = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    services = {service.name: service for service in kept_services(str(tmp_path))}
    for row in rows:
        feed = services[row["service"]].feed_of(row["bucket"], row["key"])
        place = (f"s3://{row['bucket']}", (feed.prefix if feed else "").rstrip("/") or "/")
        for table, _ in row["tables"]:
            wanted[f"{row['service']}.{table}", str(row["batch"]), *place] += 1
    for event in events(tmp_path):
        batch = event["run"]["facets"]["tags"]["tags"][0]["value"]
        assert len({told_of["namespace"] + told_of["name"] for told_of in event["inputs"]}) == len(event["inputs"])
        for one in event["inputs"] if event["eventType"] == "COMPLETE" else ():
            count = one["inputFacets"]["inputStatistics"]["fileCount"]
            found[event["job"]["name"], batch, one["namespace"], one["name"]] += count
    assert found == wanted
