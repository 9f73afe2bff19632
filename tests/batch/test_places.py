"""Each row's place leads back to its bytes: random files through the tasks of a batch and, as `where --row --text` does,
back from the line. Without Spark."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forebay.batch.one_pass.answers import Answer, together
from forebay.batch.one_pass.spec import PassSpec
from forebay.batch.one_pass.task import GatherTask, ReadTask, Task
from forebay.content.limits import Limits
from forebay.landed_file import LandedFile
from forebay.operate.looking import record
from forebay.operate.looking.files import LedgerFile
from tests.batch.tasks import spec_of
from tests.operate.ledger import entry

SERVICE = """
name = "s"
[[tables]]
name = "{game}"
columns = [{ name = "id" }, { name = "n", type = "long" }]
"""


@dataclass
class Drawn:
    """A file as it is made. `rows` are the good records by id, and `dirty` the others: line, first byte, and text."""

    text: bytearray = field(default_factory=bytearray)
    rows: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    dirty: list[tuple[int, int, str]] = field(default_factory=list)

    def here(self, text: str) -> tuple[int, int, str]:
        return self.text.count(b"\n") + 1, len(self.text), text

    def add(self, text: str, record_id: str | None = None) -> None:
        if record_id is None:
            self.dirty.append(self.here(text))
        else:
            self.rows[record_id] = self.here(text)
        self.text += text.encode()


words = st.text(st.sampled_from('aé€𝄞" ,\\\t'), max_size=5)
games = st.sampled_from(["alpha", "beta"])
gaps = st.sampled_from(["\n", "\r\n", "\n\n", " \n\t\n", "\n  "])
DIRTY = ['{"id":', "null", '"é"', '{"id" 1}']
dirty = st.sampled_from(DIRTY)
good = st.tuples(games, words, st.integers(0, 9))


@st.composite
def json_lines(draw: st.DrawFn, key: str) -> Drawn:
    drawn = Drawn()
    for number, one in enumerate([draw(good), *draw(st.lists(st.one_of(good, dirty), max_size=8))]):
        if isinstance(one, str):
            drawn.add(one)
        else:
            game, word, n = one
            made = {"game": game, "id": f"{key}-{number}", "word": word, "n": n}
            drawn.add(json.dumps(made, ensure_ascii=draw(st.booleans())), made["id"])
        drawn.text += draw(gaps).encode()
    if draw(st.booleans()):
        drawn.text = drawn.text.rstrip()
    return drawn


@st.composite
def array(draw: st.DrawFn, key: str) -> Drawn:
    drawn = Drawn(bytearray(draw(st.sampled_from([b"[", b"\n[ ", b"[\r\n"]))))
    for number, (game, word, n) in enumerate(draw(st.lists(good, min_size=1, max_size=6))):
        if number:
            drawn.text += draw(st.sampled_from([",", ",\n", " ,\r\n  "])).encode()
        made = {"game": game, "id": f"{key}-{number}", "word": word, "n": n}
        indent = draw(st.sampled_from([None, 1]))
        drawn.add(json.dumps(made, ensure_ascii=False, indent=indent), made["id"])
    drawn.text += draw(st.sampled_from(["]", "\n]\n"])).encode()
    return drawn


@st.composite
def delimited(draw: st.DrawFn, key: str) -> Drawn:
    drawn, end = Drawn(bytearray()), draw(st.sampled_from(["\n", "\r\n"]))
    drawn.text += f"game,id,word,n{end}".encode()
    for number, one in enumerate(draw(st.lists(st.one_of(good, st.just("a,b,c,d,e,f")), max_size=8))):
        if isinstance(one, str):
            drawn.add(one)
        else:
            game, word, n = one
            quoted = (word + draw(st.sampled_from(["", "\n", "\nx"]))).replace('"', '""')
            drawn.add(f'{game},{key}-{number},"{quoted}",{n}', f"{key}-{number}")
        drawn.text += end.encode()
    return drawn


def files() -> st.SearchStrategy[dict[str, Drawn]]:
    return st.fixed_dictionaries(
        {
            "a.json": json_lines("a"),
            "b.json.gz": json_lines("b"),
            "c.json": array("c"),
            "d.json.gz": array("d"),
            "e.csv": delimited("e"),
            "f.csv.gz": delimited("f"),
        }
    )


def contents_of(drawn: Mapping[str, Drawn]) -> dict[str, bytes]:
    texts = {key: bytes(one.text) for key, one in drawn.items()}
    return {key: gzip.compress(text) if key.endswith("gz") else text for key, text in texts.items()}


def ways(batch: PassSpec) -> Iterable[Answer]:
    """By tasks that write what they read, which get no parts of files, and by those that send it to others."""
    if all(piece.whole for piece in batch.pieces):
        yield together(list(Task(batch)([list(batch.pieces)])))
    half = len(batch.pieces) // 2
    hands = [list(batch.pieces[:half]), list(batch.pieces[half:])]
    sent = [one for number, hand in enumerate(hands) for one in ReadTask(batch, 2, 1)(number, [hand])]
    yield together(list(GatherTask(batch)(sent)))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files(), st.sampled_from([None, 40, 200]))
def test_every_row_and_every_refused_record_has_the_place_of_its_bytes(
    monkeypatch: pytest.MonkeyPatch, drawn: dict[str, Drawn], piece_bytes: int | None
) -> None:
    limits = Limits() if piece_bytes is None else Limits(piece_bytes=piece_bytes)
    batch, storage = spec_of(SERVICE, contents_of(drawn), monkeypatch, limits=limits)
    keys = {piece.file.file_id: piece.file.key for piece in batch.pieces}
    for answer in ways(batch):
        assert answer.odd is None
        rows = [row for table in ("alpha", "beta") for row in storage.rows(answer, table)]
        found = sorted((keys[row["_file_id"]], row["id"], row["_line"]) for row in rows)
        assert found == sorted(
            (key, one, line) for key, made in drawn.items() for one, (line, _, _) in made.rows.items()
        )
        refused = sorted(
            (keys[row["file_id"]], row["line"], row["byte_offset"], row["record"].rstrip())
            for row in storage.rows(answer, "_forebay/quarantine")
        )
        assert refused == sorted((key, *place) for key, made in drawn.items() for place in made.dirty)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files(), st.sampled_from([None, 40, 200]))
def test_the_line_of_a_row_leads_back_to_its_bytes(
    monkeypatch: pytest.MonkeyPatch, drawn: dict[str, Drawn], piece_bytes: int | None
) -> None:
    """As `where --row --text` reads them."""
    limits = Limits() if piece_bytes is None else Limits(piece_bytes=piece_bytes)
    monkeypatch.setattr(record, "LIMITS", limits)
    batch, _ = spec_of(SERVICE, contents := contents_of(drawn), monkeypatch)

    def get(file: LandedFile, start: int = 0, stop: int | None = None) -> bytes:
        return contents[file.key][start:stop]

    for key, made in drawn.items():
        file = LedgerFile.of(entry(key, bucket="landing", size=len(contents[key])))
        asked = {line for line, _, _ in [*made.rows.values()][::2]}
        wanted = {place for place in made.rows.values() if place[0] in asked}
        found = [row for row in record._rows(file, asked, batch.service, get) if not isinstance(row, record.NotRead)]
        assert {row[:2] for row in found} == {place[:2] for place in wanted}
        for line, start, text in found:
            (of_file,) = (place[2] for place in wanted if place[:2] == (line, start))
            assert "csv" in key or text == of_file
            assert bytes(made.text[start:]).startswith(of_file.encode())
