"""The fields that the declarations name, as Spark reads them: one parse for all, each as the text that it was written as.

In: rows with a record's text, and a service. Out: the same rows with `_parsed`, and for each path an expression over it. A
field is text so that a wrong type is seen where the value is used and not by the parser. `record.route.text_of` is the
definition, in Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from forebay.batch.record_fields import read_fields
from forebay.declaration import object_key
from forebay.declaration.column import of_the_file
from forebay.declaration.feed import Feed
from forebay.declaration.form import EXPLODED, ORDINAL
from forebay.declaration.path import parse_path
from forebay.declaration.place import most_specific_first
from forebay.declaration.service import Service

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

__all__ = ["field", "fields_of", "metadata_is_asked_for", "parsed"]


def parsed(rows: DataFrame, text: Expression, service: Service) -> DataFrame:
    """The rows with `_parsed`, the fields that the declarations name."""
    return rows.withColumn("_parsed", read_fields(text, [parse_path(path).steps for path in _in_order(service)]))


def field(service: Service, path: str) -> Expression:
    """A field of the parsed record, as text; an object or an array as JSON. One of the file comes from the rows' `bucket`,
    `key` or `metadata`."""
    from pyspark.sql import functions as F

    wanted = parse_path(path)
    name = str(wanted.steps[0])
    if wanted.origin == "key":
        return _part_of_key(service, name)
    if wanted.origin == "metadata":
        return F.nullif(F.get_json_object("metadata", f"$['{name}']"), F.lit(""))
    if name == "feed":
        return _by_feed(service, {feed.name: F.lit(feed.name) for feed in service.all_feeds})
    if wanted.origin == "object":
        whole = F.substring_index("key", "/", -1) if name == "file" else F.col(name)
        return F.nullif(whole, F.lit(""))
    # By number: Spark tells names apart only if more than their case differs.
    return F.col(f"_parsed.`{_in_order(service).index(str(wanted))}`")


def _part_of_key(service: Service, name: str) -> Expression:
    from pyspark.sql import functions as F

    def part(template: str) -> Expression:
        group = object_key.names(template).index(name) + 1
        return F.nullif(F.regexp_extract("key", object_key.pattern(template), group), F.lit(""))

    return _by_feed(
        service, {feed.name: part(feed.key) for feed in service.all_feeds if name in object_key.names(feed.key)}
    )


def _by_feed(service: Service, values: Mapping[str, Expression]) -> Expression:
    """The value of the feed that the row's file belongs to; null where it belongs to none, or the feed has no value."""
    from pyspark.sql import functions as F

    feeds, nothing = service.all_feeds, F.lit(None).cast("string")
    if not service.feeds:
        return values.get(feeds[0].name, nothing)
    first, *others = (feeds[n] for n in most_specific_first([feed.place for feed in feeds]))
    chosen = F.when(_lies_in(first), values.get(first.name, nothing))
    for feed in others:
        chosen = chosen.when(_lies_in(feed), values.get(feed.name, nothing))
    return chosen


def _lies_in(feed: Feed) -> Expression:
    """`Place.holds`, for Spark."""
    from pyspark.sql import functions as F

    here = F.startswith(F.col("key"), F.lit(feed.prefix))
    return here & (F.col("bucket") == F.lit(feed.bucket)) if feed.bucket else here


def fields_of(service: Service) -> set[str]:
    """Every field of a record that the declarations name."""
    return {path for path in _named(service) if not of_the_file(path)}


def metadata_is_asked_for(service: Service) -> bool:
    """Whether the declarations name anything of the objects' metadata."""
    return any(parse_path(path).origin == "metadata" for path in _named(service))


def _named(service: Service) -> set[str]:
    named = {EXPLODED, ORDINAL} if service.exploded else set()
    return named.union(*(table.named for table in service.tables))


def _in_order(service: Service) -> list[str]:
    return sorted(fields_of(service))
