"""Decides which records of a block go to which table. `record.route` is the definition, called once for each combination of
the deciding fields.

In: records, with the pieces that they are of. Out: the routes in use, and the route of each record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.one_pass.columns import Answered
from forebay.batch.one_pass.landed import Landed
from forebay.declaration.column import Column
from forebay.declaration.form import ORDINAL
from forebay.declaration.path import parse_path
from forebay.declaration.service import Service
from forebay.declared_sql.questions import CONDITION, Questions
from forebay.record.conform import Records
from forebay.record.route import Route, deciding_paths, route_by
from forebay.record.typed import typed

KNOWN_AT_MOST = 200_000


class Router:
    """The router of one task."""

    def __init__(self, service: Service, landed: Landed, conditions: Questions) -> None:
        self.service, self.landed = service, landed
        self._conditions = {number: question.checks[CONDITION] for number, question in conditions.of.items()}
        paths = deciding_paths(service)
        self._of_object = [path for path in paths if not parse_path(path).of_record]
        self._of_record = [path for path in paths if parse_path(path).of_record]
        self._columns = [Column(name=f"n{number}", path=path) for number, path in enumerate(self._of_record)]
        self._ordinal_is_a_mark = not any(ORDINAL in (*table.fields, *table.where) for table in service.tables)
        self._known: dict[tuple[str | None, ...], Route] = {}

    def routes(self, records: Records, rows: pa.Table, unread: Sequence[int] = ()) -> tuple[list[Route], Any]:
        """The routes, and for each record the number of its own. That of an `unread` record means nothing."""
        fields = typed(records, self._columns, unread).columns if self._columns else []
        fields = [self._deciding(*one) for one in zip(self._of_record, fields, strict=True)]
        fields += [self.landed.of_object(parse_path(path), rows) for path in self._of_object]
        fields += [_holds(rows[slot]) for slot in self._conditions.values()]
        if not fields:
            return [self._route(())], np.zeros(rows.num_rows, np.int64)
        codes = np.zeros(rows.num_rows, np.int64)
        for field in fields:
            encoded = field.dictionary_encode(null_encoding="encode")
            codes = codes * max(1, len(encoded.dictionary)) + np.asarray(encoded.indices)
            _, codes = np.unique(codes, return_inverse=True)
        _, firsts = np.unique(codes, return_index=True)
        chosen = zip(*(field.take(pa.array(firsts)).to_pylist() for field in fields), strict=True)
        return [self._route(one) for one in chosen], codes

    def _deciding(self, path: str, texts: pa.StringArray) -> pa.StringArray:
        """Elements of an array differ by their position, which decides nothing."""
        return pc.if_else(pc.is_valid(texts), "0", texts) if path == ORDINAL and self._ordinal_is_a_mark else texts

    def _route(self, texts: tuple[str | None, ...]) -> Route:
        known = self._known.get(texts)
        if known is None:
            if len(self._known) >= KNOWN_AT_MOST:
                self._known.clear()
            paths = [*self._of_record, *self._of_object]
            by_path = dict(zip(paths, texts, strict=False))
            holds = dict(zip(self._conditions, texts[len(paths) :], strict=True))
            known = self._known[texts] = route_by(self.service, by_path.__getitem__, lambda n: holds[n] is not None)
        return known


def _holds(slot: pa.ChunkedArray) -> pa.StringArray:
    """A text where the SQL holds. It does not where it is null, or could not be computed."""
    answers = Answered.of(slot)
    return pc.if_else(pc.fill_null(answers.values, False), "yes", pa.scalar(None, pa.string()))
