"""Tasks of one pass that are repeated or disagree: together they make one reading, or the pass is given up."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import forebay.batch.one_pass.gathering as gathering
import forebay.batch.one_pass.reader as reader
import forebay.batch.one_pass.writer as writer
import forebay.content.reading as contents
import forebay.content.rows as content_rows
from forebay.batch.one_pass.answers import Answer, together
from forebay.batch.one_pass.gathering import Ends
from forebay.batch.one_pass.spec import PassSpec
from forebay.batch.one_pass.task import GatherTask, ReadTask, Task
from forebay.content.limits import Limits
from forebay.content.outcome import Unread
from forebay.errors import Halt
from forebay.landed_file import LandedFile
from forebay.privacy.known_secret import known_token
from forebay.privacy.secret import make_secret, secret_at
from tests.batch.tasks import spec_of
from tests.batch.world import SERVICE, records

BY_KIND = """
name = "s"
[[tables]]
name = "{game}"
where = { kind = "typed" }
columns = [{ name = "x", type = "long" }]
[[tables]]
name = "{game}"
"""


def parcels(spec: PassSpec, reader: int = 0, *, readers: int = 2, writers: int = 2) -> list[Any]:
    return list(ReadTask(spec, readers, writers)(reader, [list(spec.pieces)]))


def written(spec: PassSpec, sent: list[list[Any]]) -> Answer:
    """By one writer for each of what was sent at a time, of which it takes its own."""
    made = [GatherTask(spec)([one for one in some if one[0] == number]) for number, some in enumerate(sent)]
    return together([answer for answers in made for answer in answers])


def test_a_reader_that_is_repeated_once_others_wrote_its_records_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files arrive in another order, so a writer would get records again that another one has, and as many as before."""
    monkeypatch.setattr(content_rows, "BATCH_ROWS", 10)
    monkeypatch.setattr(gathering, "PARCEL_BYTES", 400)
    monkeypatch.setattr(gathering, "WRITER_BYTES", 1)
    monkeypatch.setattr(contents, "joined", lambda batches: batches)
    batch, storage = spec_of(SERVICE, {"a.json": records(alpha=20), "b.json": records(alpha=10)}, monkeypatch)

    def in_order(reverse: bool, pieces: Any, fetch: Any, limits: Any) -> Any:
        return ((piece, fetch(piece)) for piece in sorted(pieces, key=lambda piece: piece.number, reverse=reverse))

    sent = []
    for reverse in (False, True):
        monkeypatch.setattr(contents, "fetch_all", partial(in_order, reverse))
        sent.append(parcels(batch))
    once, twice = written(batch, [sent[0], sent[0]]), written(batch, sent)
    assert once.odd is None
    assert len({(row["_file_id"], row["_line"]) for row in storage.rows(once, "alpha")}) == 30
    assert len({(row["_file_id"], row["_line"]) for row in storage.rows(twice, "alpha")}) < 30
    assert "read its files again" in (twice.odd or "")


def test_a_reader_that_failed_in_one_of_its_runs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    batch, _ = spec_of(SERVICE, {"a.json": records(alpha=3)}, monkeypatch)
    assert "to the end" in (written(batch, [parcels(batch), []]).odd or "")


def test_a_file_that_reads_differently_from_before_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the ends of pieces are known before, a writer waits for none."""
    files = {"a.json": records(alpha=3), "b.json": records(alpha=4)}
    before, _ = spec_of(SERVICE, files, monkeypatch)
    ends = tuple(end for _, parcel in parcels(before, writers=1) if isinstance(parcel, Ends) for end in parcel.ends)
    known = replace(before, ends=ends)
    (same,) = GatherTask(known)(parcels(known, writers=1))
    assert same.odd is None
    now, _ = spec_of(SERVICE, files | {"b.json": records(alpha=5)}, monkeypatch)
    (other,) = GatherTask(known)(parcels(now, writers=1))
    assert other.odd == "s3://landing/b.json gave different records when it was read again"


def test_a_writer_alone_has_the_pieces_of_one_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    batch, storage = spec_of(SERVICE, {"a.json": records(alpha=3), "b.json": records(alpha=4)}, monkeypatch)
    sent = list(ReadTask(batch, 2, 1)(0, [[batch.pieces[0]]]))
    (alone,) = GatherTask(batch, alone=True)(sent)
    assert (alone.odd, len(storage.rows(alone, "alpha"))) == (None, 3)
    (with_others,) = GatherTask(batch)(sent)
    assert with_others.odd == "a task did not read its files to the end"


def test_records_that_were_routed_are_sent_by_the_task_that_read_them(monkeypatch: pytest.MonkeyPatch) -> None:
    batch, storage = spec_of(SERVICE, {"a.json": records(alpha=3)}, monkeypatch)
    read = [(1, parcel) for _, parcel in parcels(batch, reader=1, writers=1)]
    routed = list(ReadTask(batch, 2, 1).routed(iter(read)))
    assert [(to, parcel.task) for to, parcel in routed if isinstance(parcel, Ends)] == [(0, 1)]
    (answer,) = GatherTask(batch)(routed)
    assert (answer.odd, len(storage.rows(answer, "alpha"))) == (None, 3)
    assert list(ReadTask(batch, 2, 1).routed(iter([]))) == []


def test_a_record_that_is_nested_too_deep_for_arrow_is_sent_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = "[" * 100 + "]" * 100
    lines = [f'{{"game": "alpha", "deep": {lists}}}', '{"game": "alpha", "n": 1}']
    batch, storage = spec_of(SERVICE, {"a.json": "\n".join(lines).encode()}, monkeypatch)
    answer = written(batch, [parcels(batch)] * 2)
    assert answer.odd is None
    found = {(row["n"], row["_rescued"]) for row in storage.rows(answer, "alpha")}
    assert found == {(None, f'{{"deep":{lists}}}'), (1, None)}


def test_a_name_that_two_declarations_make_in_two_tasks_is_the_first_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"a.json": b'{"game": "g", "kind": "typed", "x": 1}', "b.json": b'{"game": "g", "x": "one"}'}
    batch, storage = spec_of(BY_KIND, files, monkeypatch)
    answer = together([answer for piece in batch.pieces for answer in Task(batch)([[piece]])])
    assert answer.odd is None
    rows = sorted((row["x"] or 0, row["_rescued"]) for row in storage.rows(answer, "g"))
    assert rows == [(0, '{"x":"one"}'), (1, None)]
    assert {judged.declared for judged in answer.fates} == {0}


def test_a_new_column_does_not_get_its_type_from_another_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow parses the records of all tables at once, and takes a number for a double where another one has a fraction."""
    lines = [
        '{"game":"a","n":1,"deep":{"n":[2]}}',
        '{"game":"b","n":1.5,"deep":{"n":[2.5]}}',
        '{"game":"c","n":1.0,"deep":{}}',
    ]
    batch, storage = spec_of(
        'name = "s"\n[[tables]]\nname = "{game}"\n', {"x.json": "\n".join(lines).encode()}, monkeypatch
    )
    answer = together(list(Task(batch)([list(batch.pieces)])))
    assert [repr(storage.rows(answer, game)[0]["n"]) for game in "abc"] == ["1", "1.5", "1.0"]
    assert repr(storage.rows(answer, "a")[0]["deep"]) == "{'n': [2]}"


def test_a_record_that_may_not_be_in_a_table_decides_no_type_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    service = 'name = "s"\n[[tables]]\nname = "t"\ncolumns = [{ name = "place" }]\npartitions = ["place"]\n'
    content = b'{"place":"here","n":1}\n{"place":"a/b","n":1.5}'
    batch, storage = spec_of(service, {"x.json": content}, monkeypatch)
    answer = together(list(Task(batch)([list(batch.pieces)])))
    assert [repr(row["n"]) for row in storage.rows(answer, "t")] == ["1"]


def test_a_value_that_is_too_long_for_a_folder_is_refused_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    service = """
name = "s"
[[tables]]
name = "t"
columns = [{ name = "place" }]
partitions = ["place"]
partition_values = { place = ".*" }
"""
    places = ["x" * 249, "x" * 250, "é" * 125, "/" * 84, "here"]
    content = "\n".join(json.dumps({"place": place}) for place in places)
    batch, storage = spec_of(service, {"x.json": content.encode()}, monkeypatch)
    answer = together(list(Task(batch)([list(batch.pieces)])))
    assert [row["place"] for row in storage.rows(answer, "t")] == [places[0], "here"]
    assert [row["reason"] for row in storage.rows(answer, "_forebay/quarantine")] == ["bad-partition-value"] * 3


def test_a_writer_does_not_hold_all_that_others_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "TABLE_BYTES", 2_000)
    monkeypatch.setattr(writer, "TASK_BYTES", 4_000)
    batch, storage = spec_of(SERVICE, {f"{n}.json": records(alpha=30) for n in range(6)}, monkeypatch)
    sent = [one for at, piece in enumerate(batch.pieces) for one in ReadTask(batch, 6, 1)(at, [[piece]])]
    answer = written(batch, [sent])
    assert answer.odd is None
    assert len([file for file in answer.files if "path" in file]) > 1
    assert len(storage.rows(answer, "alpha")) == 180


def test_records_beside_the_tables_make_no_small_data_files_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "TASK_BYTES", 4_000)
    files = {f"{n}.json": records(alpha=1, homeless=20) for n in range(30)}
    for count, odd in ((10, False), (30, True)):
        batch, _ = spec_of(SERVICE, dict([*files.items()][:count]), monkeypatch)
        monkeypatch.setattr(contents, "joined", lambda batches: batches)
        answer = together(list(Task(batch)([list(batch.pieces)])))
        assert len([file for file in answer.files if file["table"] == "alpha" and "path" in file]) == (not odd)
        assert ("more records wait" in (answer.odd or "")) == odd


def test_records_beside_the_tables_are_counted_in_every_piece_of_their_file(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(piece_bytes=40)
    batch, _ = spec_of(SERVICE, {"a.json": records(alpha=3, broken=20, homeless=20)}, monkeypatch, limits=limits)
    answer = written(batch, [parcels(batch, readers=1, writers=1)])
    assert Counter(one.fate for one in answer.fates.elements()) == {"write": 3, "quarantine": 20, "park": 20}


def test_a_text_whose_personal_fields_nobody_can_find_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    service = f'{SERVICE}[privacy]\npersonal = ["email"]\n'
    broken = b"""{'game': 'a', 'email': 'anna@example.org'}\n{"game": "a", "email": "anna@example.org",}\n"""
    batch, storage = spec_of(service, {"x.json": broken + b'{"game": "a", "email": "anna@example.org"}'}, monkeypatch)
    answer = together(list(Task(batch)([list(batch.pieces)])))
    assert len(storage.rows(answer, "_forebay/quarantine")) == 2
    assert not [place for place, content in storage.files.items() if b"anna" in content]
    kept = [row["record"] for row in storage.rows(answer, "_forebay/quarantine")]
    assert kept == ["(not kept: its personal fields are unknown)"] * 2


def test_a_task_answers_with_no_more_ids_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    service = SERVICE + 'dedupe = { by = ["event_id"] }\n'
    batch, _ = spec_of(service, {"a.json": records(alpha=5, beta=5)}, monkeypatch)
    for most, lacks in ((10, False), (9, True)):
        (answer,) = Task(replace(batch, ids_at_most=most))([list(batch.pieces)])
        assert together([answer]).lacks_ids == lacks
        assert bool(answer.identified) != lacks
        assert sum(answer.fates.values()) == 10


def test_elements_of_arrays_become_rows_and_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    service = """
name = "s"
[[tables]]
name = "lines"
explode = "items"
where = { "@parent.kind" = "sale" }
columns = [{ name = "order", type = "long", path = "@parent.id" }, { name = "position", type = "int", path = "@ordinal" }]
[[tables]]
name = "orders"
where = { "items[0].sku" = { exists = true } }
columns = [{ name = "sku", path = "items[1].sku" }, { name = "rest", type = "map" }, { name = "items", type = "json" }]
"""
    orders = [
        '{"id":1,"kind":"sale","items":[{"sku":"a"},{"sku":1.50}],"rest":{"n":1.0,"of":[2]}}',
        '{"id":2,"kind":"gift","items":[{"sku":"b"}],"rest":[]}',
        '{"id":3,"kind":"sale","items":[]}',
    ]
    batch, storage = spec_of(service, {"x.json": "\n".join(orders).encode()}, monkeypatch)
    answer = together(list(Task(batch)([list(batch.pieces)])))
    assert answer.odd is None
    assert [(row["order"], row["position"], row["sku"]) for row in storage.rows(answer, "lines")] == [
        (1, 0, "a"),
        (1, 1, "1.50"),
    ]
    first, second = sorted(storage.rows(answer, "orders"), key=lambda row: row["_line"])
    assert (first["sku"], first["rest"], first["items"]) == (
        "1.50",
        [("n", "1.0"), ("of", "[2]")],
        '[{"sku":"a"},{"sku":1.50}]',
    )
    assert (second["sku"], second["rest"], second["_rescued"]) == (None, None, '{"rest":[]}')
    fates = {(one.fate, one.table): count for one, count in answer.fates.items()}
    assert fates == {("write", "lines"): 2, ("write", "orders"): 2, ("drop", None): 1, ("park", None): 1}


def test_a_record_decides_about_its_table_under_whatever_key_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """`game` and `Game` share a column. Arrow parses the records of a block at once, and has two fields then."""
    service = 'name = "s"\n[[tables]]\nname = "{p.game}"\ncolumns = [{ name = "n", type = "long" }]\n'
    lines = [
        '{"p":{"game":"a"},"n":1}',
        '{"p":{"Game":"a"},"N":2}',
        '{"p":{"GAME":"b","game":"a"}}',
        '{"P":{"game":"a"}}',
    ]
    batch, storage = spec_of(service, {"x.json": "\n".join(lines).encode()}, monkeypatch)
    answer = together(list(Task(batch)([list(batch.pieces)])))
    assert answer.odd is None
    assert sorted((row["_line"], row["n"]) for row in storage.rows(answer, "a")) == [
        (1, 1),
        (2, 2),
        (3, None),
        (4, None),
    ]


def test_records_of_a_moved_file_are_read_from_its_copy_in_the_name_of_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns = '[{ name = "note", path = "@metadata.note" }, { name = "from", path = "@key" }]'
    rule = 'after_load = { move = "s3://archive/old" }'
    service = f'name = "s"\n{rule}\n[[tables]]\nname = "{{game}}"\ncolumns = {columns}\n'
    content = records(alpha=2)
    batch, storage = spec_of(service, {"in/a.json": content}, monkeypatch)
    (file,) = {piece.file for piece in batch.pieces}

    def source(limits: Limits, metadata: Any) -> Any:
        def get(asked: LandedFile, start: int = 0, stop: int | None = None) -> bytes | Unread:
            if asked.bucket != "archive":
                return Unread("missing", "no-such-key")
            assert asked.key == f"old/landing/in/{file.file_id}/a.json"
            metadata[asked] = {"note": "mine"}
            return content[start:stop]

        return get

    monkeypatch.setattr(reader, "source", source)
    answer = together(list(Task(batch)([list(batch.pieces)])))
    rows = storage.rows(answer, "alpha")
    assert {(row["note"], row["from"], row["_file_id"]) for row in rows} == {("mine", "in/a.json", file.file_id)}
    assert len(rows) == 2


def test_a_task_refuses_another_secret_than_its_driver_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Somebody replaced it while the job runs, and this worker started later. One batch would have tokens of both."""
    make_secret(address := f"{tmp_path}/secret")
    fields = f'[privacy]\npersonal = [{{ path = "id", become = "token" }}]\nsecret = "{address}"\n'
    batch, _ = spec_of(SERVICE + fields, {"a.json": records(alpha=3)}, monkeypatch)
    batch = replace(batch, secret_token=known_token(address))
    assert Task(batch).done(list(batch.pieces)).odd is None
    (tmp_path / "secret").unlink()
    make_secret(address)
    secret_at.cache_clear()
    refused = rf"{address} was replaced while the job ran: .* Restore the first secret"
    with pytest.raises(Halt, match=refused):
        Task(batch).done(list(batch.pieces))
    with pytest.raises(Halt, match=refused):
        list(ReadTask(batch, 1, 1).of_held(iter(())))
