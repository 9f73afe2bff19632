"""A declared Python step: the typed columns of some records, through a function.

In: an array for each column. Out: the same after the function, and for each row that it refuses the reason. A row fails alone:
if the function raises an error, or returns a number that its column cannot hold, each half of the rows is tried again, down to
single rows. `NoFunction` where it cannot be used at all: it cannot be imported, or it returns other rows or types than it must.
A function that does not return in time ends this process: nothing else stops every kind of code. Its rows are then read again,
with the function in a process of its own (`record.apart`). So are those for which it needs more memory than a task may take.
"""

from __future__ import annotations

import faulthandler
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from forebay.content.ceiling import ceiling
from forebay.content.limits import Limits
from forebay.counted import counted
from forebay.record.moment import AFTER, FIRST, MICROS_OF_A_DAY
from forebay.transforms import MOST_REASON, NoFunction, code_version, function_of, line_of, reason_of

if TYPE_CHECKING:  # see `record.apart`
    from forebay.declaration.service import Service

REFUSED = "_refused"
"""The column in which a function may say why it refuses a row; null for a row that is fine."""

MOST_WHOLE = 1 << 53
"""From here on, doubles do not have all whole numbers."""

CALL_S, ROW_S, IMPORT_S = 20.0, 0.001, 60.0
"""The time of a call, the time that it has in addition for each row, and the time of an import."""
STDERR = 2
"""The log of the process."""


@dataclass(frozen=True)
class Transformed:
    """`refused` has null for each row that is fine."""

    columns: dict[str, pa.Array]
    refused: pa.StringArray


@dataclass(frozen=True)
class Transform:
    """One such step. `places` are the folders in which the driver finds its functions. A call may take
    `memory_bytes` more than its process has. `is_alone`: the process does nothing else, so if memory is not enough for a single
    row, that row is to blame."""

    name: str
    places: tuple[str, ...] = ()
    call_s: float = CALL_S
    import_s: float = IMPORT_S
    is_alone: bool = False
    memory_bytes: int = Limits.task_memory_bytes

    def applied(self, columns: Mapping[str, pa.Array]) -> Transformed:
        rows = pa.table(dict(columns))
        if not rows.num_rows:
            return Transformed(dict(columns), pa.array([], pa.string()))
        made = self.made(rows)
        arrays = {name: made[name].combine_chunks() for name in made.column_names}
        refused = pc.utf8_slice_codeunits(arrays[REFUSED], 0, MOST_REASON)
        return Transformed({name: arrays[name] for name in columns}, refused)

    def made(self, rows: pa.Table) -> pa.Table:
        """The rows after the function, with `REFUSED`."""
        return self._tried(self.function(), rows)

    def function(self) -> Callable[[pa.Table], Any]:
        with _in_time(self.import_s), ceiling(self.memory_bytes):
            return function_of(self.name, self.places)

    def seconds_for(self, rows: pa.Table) -> float:
        return self.call_s + ROW_S * float(rows.num_rows)

    def _tried(self, function: Callable[[pa.Table], Any], rows: pa.Table) -> pa.Table:
        try:
            with _in_time(self.seconds_for(rows)), ceiling(self.memory_bytes):
                made = function(rows)
            return self._like(rows, made)
        except (KeyboardInterrupt, NoFunction):
            raise
        except ImportError as missing:
            raise NoFunction(f"{self.name} cannot be imported: {reason_of(missing)}") from missing
        except BaseException as failure:  # such as SystemExit, or the panic of a module in Rust
            if rows.num_rows > 1:
                return self._halves(function, rows)
            if isinstance(failure, MemoryError) and not self.is_alone:  # the task may have too much beside the row
                raise
            return refused_of(rows, f"{reason_of(failure)}{line_of(failure)}")

    def _halves(self, function: Callable[[pa.Table], Any], rows: pa.Table) -> pa.Table:
        half = rows.num_rows // 2
        return pa.concat_tables([self._tried(function, some) for some in (rows.slice(0, half), rows.slice(half))])

    def _like(self, rows: pa.Table, made: Any) -> pa.Table:
        """The returned rows, with the columns that the function left out."""
        if isinstance(made, pa.RecordBatch):
            made = pa.Table.from_batches([made])
        if not isinstance(made, pa.Table):
            raise NoFunction(f"{self.name} returned {type(made).__name__} instead of a pyarrow.Table")
        if made.num_rows != rows.num_rows:
            returned = counted(made.num_rows, "row", of=rows.num_rows)
            raise NoFunction(f"{self.name} returned {returned}; it must return each row once")
        wanted = {field.name: field.type for field in rows.schema} | {REFUSED: pa.string()}
        names: list[str] = made.column_names
        for name, kind in zip(names, made.schema.types, strict=True):
            if name not in wanted:
                raise NoFunction(f"{self.name} returned the column {name}, which is not among the columns that it gets")
            if names.count(name) > 1:
                raise NoFunction(f"{self.name} returned the column {name} twice")
            if not _may_be(kind, wanted[name]) and not _may_hold(kind, wanted[name]):
                raise NoFunction(f"{self.name} returned {name} as {kind}; it must be {wanted[name]}")
        made.validate(full=True)  # readers refuse a file with a text that is not UTF-8
        nothing = pa.nulls(rows.num_rows, pa.string())
        found = {name: _cast(name, made[name], wanted[name]) for name in names}
        return pa.table({name: found.get(name, rows[name] if name != REFUSED else nothing) for name in wanted})


@contextmanager
def _in_time(seconds: float) -> Iterator[None]:
    """Afterwards, this process ends, and its log says where it was. A thread in C sees to that: the interpreter may be busy."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=STDERR)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def refused_of(rows: pa.Table, why: str) -> pa.Table:
    """All of these rows, refused."""
    return rows.append_column(REFUSED, pa.repeat(pa.scalar(why, pa.string()), rows.num_rows))


def _may_be(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Arrow gives rows without a value, or with nothing but empty lists, the type null. Other rows of the table have some."""
    if pa.types.is_list(kind) and pa.types.is_list(wanted):
        return _may_be(kind.value_type, wanted.value_type)
    if pa.types.is_struct(kind) and pa.types.is_struct(wanted):
        names = [field.name for field in kind] == [field.name for field in wanted]
        return names and all(_may_be(has.type, its.type) for has, its in zip(kind, wanted, strict=True))
    return kind in (wanted, pa.null())


def _may_hold(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Types that pandas makes of the wanted one: of integers beside null and of decimals, they depend on the rows. It makes
    no smaller floats, which lose digits sooner."""
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_float64(kind))
    if pa.types.is_decimal(wanted):
        return bool(pa.types.is_decimal(kind))
    return bool(pa.types.is_string(wanted) and (pa.types.is_large_string(kind) or pa.types.is_string_view(kind)))


def _cast(name: str, made: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """The same values in the wanted type; `ValueError` if it does not have one of them."""
    if pa.types.is_floating(made.type) and pa.types.is_integer(wanted):
        most = pc.max(pc.abs(made)).as_py()
        if most is not None and most >= MOST_WHOLE:
            raise ValueError(f"{name} is {most:.0f} as {made.type}, which has lost digits; return it as {wanted}")
    try:
        found = made.cast(wanted)
    except pa.ArrowInvalid as failure:
        raise ValueError(f"{name} does not fit into {wanted}: {failure}") from failure
    if not all(map(_is_within_years, _times_in(found))):
        raise ValueError(f"{name} has a time outside of the years 1 to 9999")
    return found


def _times_in(values: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """The dates and times, also those in its elements and fields."""
    if pa.types.is_list(values.type):
        yield from _times_in(pc.list_flatten(values))
    elif pa.types.is_struct(values.type):
        for field in values.flatten():
            yield from _times_in(field)
    elif pa.types.is_temporal(values.type):
        yield values


def _is_within_years(times: pa.ChunkedArray) -> bool:
    """Other readers cannot show a time of another year, nor read a table with it as a partition value."""
    kind, unit = (pa.int32(), MICROS_OF_A_DAY) if pa.types.is_date(times.type) else (pa.int64(), 1)
    first, last = pc.min_max(times.cast(kind)).as_py().values()
    return first is None or (first * unit >= FIRST and last * unit < AFTER)


def with_code_version(service: Service) -> Service:
    """Adds the version of the functions' code to that of the declarations, if a table has a function. The ledger then says
    which code made a row. A second call changes nothing."""
    if not any(table.transform for table in service.tables):
        return service
    return service.with_code(code_version())
