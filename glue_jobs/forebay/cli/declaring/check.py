"""`forebay tables check`: mistakes in declarations, and the tables of a lake that differ from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.cli.options import AsJson, as_lake
from forebay.cli.show import console, error_console, print_json
from forebay.cli.usage import must_be_given
from forebay.counted import counted
from forebay.errors import InvalidConfiguration, Problem, Unreachable
from forebay.spark.signals import leaving_at_once

if TYPE_CHECKING:
    from forebay.declaration.service import Service as Declarations

ComparedLake = Annotated[str, typer.Option(callback=as_lake, help="Compare them with the tables of this lake, too.")]
Sql = Annotated[bool, typer.Option(help="Have Spark check expectations and derived columns, too.")]


def check(
    service: Annotated[
        str, typer.Argument(envvar="FOREBAY_SERVICE", help="A folder, service.toml or s3:// prefix.")
    ] = "",
    sql: Sql = True,
    lake: ComparedLake = "",
    as_json: AsJson = False,
) -> None:
    """Report everything that is wrong with the declarations; with --lake, also how tables differ from them, and the effect.
    Exit status 2 for mistakes, and for differences that the next rows do not resolve."""
    must_be_given("tables check", "SERVICE", service, "FOREBAY_SERVICE")
    try:
        for found in _checked(service, lake, sql=sql):
            if as_json:
                print_json([asdict(found)])
            else:
                console.print(found.text)
    except InvalidConfiguration as refused:
        if not as_json:
            raise
        print_json({"kind": "problem", **asdict(problem)} for problem in refused.problems)
        raise typer.Exit(3 if isinstance(refused, Unreachable) else 2) from None


@dataclass(frozen=True)
class _Line:
    """`kind` is note, drift or sum."""

    kind: str
    message: str

    @property
    def text(self) -> str:
        return self.message if self.kind == "sum" else f"  {self.message}"


def _checked(place: str, lake: str, *, sql: bool) -> Iterator[_Line]:
    from forebay.declaration.loading import load_service
    from forebay.operate.declaring import declarations as declared
    from forebay.record.apart import check_transforms

    service = load_service(place, strict=True)
    check_transforms(service)
    shared = [*(check_sql(service) if sql else ()), *declared.shares_names(service)]
    yield from (_Line("note", note) for table in service.tables for note in declared.who_reads(table))
    yield from (_Line("note", note) for note in (*declared.gets_few(service), *declared.shares_columns(service)))
    yield from (_Line("note", note) for note in declared.feeds_of(service))
    yield from (_Line("note", note) for note in shared)
    count = len(service.tables)
    well = f"{counted(count, 'declaration')}, " + ("something to look at" if shared else "nothing wrong")
    where = " in the files" if lake else ""  # the tables of the lake may still differ
    where += "; SQL was not checked" if not sql and any(table.has_sql for table in service.tables) else ""
    yield _Line("sum", f"service {service.name}, version {service.version}: {well}{where}")
    if lake := begun(lake):
        yield from _checked_in_lake(service, lake)


@leaving_at_once()
def check_sql(service: Declarations) -> list[str]:
    """Sentences about possible mistakes. Starts a JVM only where there is SQL."""
    if not service.rollups and not any(table.has_sql for table in service.tables):
        return []
    if find_spec("pyspark") is None:
        hint = "pip install 'WHEEL[spark]' with the path of the wheel, or --no-sql"
        raise InvalidConfiguration.one("Spark", "is not installed, so no SQL is checked", hint)
    from forebay.declared_sql.check import check_expressions
    from forebay.declared_sql.check_rollups import missing_columns, unknown_columns
    from forebay.spark.session import session

    spark = session("forebay-check")
    check_expressions(spark, service)
    if missing := list(missing_columns(spark, service)):
        raise InvalidConfiguration(missing)
    return list(unknown_columns(spark, service))


def begun(lake: str) -> str:
    """The lake, if there are tables to compare. There are none in a mistyped one, and then nothing is as declared."""
    if not lake:
        return ""
    from forebay.aws.preflight import check_lake
    from forebay.lake.log.tables import tables_of
    from forebay.ledger.lost import has_ledger

    check_lake(lake)
    if has_ledger(lake) or tables_of(lake):
        return lake
    error_console.print(
        f"{lake} has neither a ledger nor tables yet, so there is nothing to compare: is it spelled correctly?"
    )
    return ""


def _checked_in_lake(service: Declarations, lake: str) -> Iterator[_Line]:
    from forebay.lake.origin import table_lost
    from forebay.operate.declaring.drift import drift_of_lake
    from forebay.operate.declaring.former_archives import unnamed_archives
    from forebay.operate.lake_view import LakeView, lost_tables
    from forebay.privacy.known_secret import compared_secret
    from forebay.upkeep.erase.keeping import must_fit_lake

    must_fit_lake(lake, service)
    yield from (_Line("note", note) for note in (*compared_secret(lake, service), *unnamed_archives(lake, service)))
    found, lost = drift_of_lake(service, lake), lost_tables(LakeView(lake))
    yield from (_Line("drift", str(one.problem)) for one in found.drifts if one.by_itself)
    for name in found.others:
        yield _Line("note", f"table {name}: no declaration defines it, so nothing is written to it")
    wrong = [Problem(f"table {name}", table_lost(name, its.rows, its.replayed)) for name, its in lost.items()]
    if wrong := [*wrong, *(one.problem for one in found.drifts if not one.by_itself)]:
        raise InvalidConfiguration(wrong)
    comes = ", or will be with their next rows" if found.drifts else ""
    yield _Line("sum", f"{lake}: {counted(found.tables, 'table')}, all as declared{comes}")
