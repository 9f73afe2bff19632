"""Waits until hours or days of a feed, or of all feeds of a table, are complete.

In: a view of the lake, the declarations, a feed or a table, and a span of time. Out: the periods that are still open at the
end of the wait. Only the table of periods is read: the jobs keep it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from forebay.declaration.complete import LENGTHS, Complete, Period
from forebay.declaration.feed import Feed
from forebay.declaration.kept.in_force import kept_names
from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration, meant
from forebay.lake.layout import HOME
from forebay.lake.objects import open_objects
from forebay.ledger.lost import has_ledger
from forebay.ledger.periods import FeedPeriod
from forebay.operate.named_lake import place_of
from forebay.upkeep.complete.judge import waits_for_files

T = TypeVar("T")
FEED_OF_TABLE = '. Or limit the table to feeds that do, with where = { "@feed" = ... }'
MOST_PERIODS = 100_000
"""Eleven years of hours: whoever asks for more has mistyped the year."""
UNSEEN = "no file of this time is in the ledger yet"


@dataclass(frozen=True)
class Open:
    """A period that is not complete, and what it waits for."""

    feed: str
    start: datetime
    why: str

    @property
    def waits_for_files(self) -> bool:
        return waits_for_files(self.why)

    def __str__(self) -> str:
        return f"{self.feed} {self.start:%Y-%m-%dT%H:%MZ}: {self.why}"


def feeds_meant(service: Service, name: str) -> list[Feed]:
    """The feed of this name, or all whose records may go to the table; each must say when it is complete."""
    feeds = [feed for feed in service.all_feeds if feed.name == name]
    may_fill = "" if feeds else f", and its files may have rows of {name}"
    if not feeds and (table := service.maker_of(name)) is not None:
        wanted = table.where.get("@feed")
        feeds = [feed for feed in service.all_feeds if wanted is None or wanted.holds(feed.name)]
    if not feeds and (sources := _sources(service, name)):
        hint = f"wait for {' and '.join(sources)}; `forebay tables health` shows how far the merge is behind"
        raise InvalidConfiguration.one(name, "is computed from another table", hint)
    if not feeds:
        names = [*(feed.name for feed in service.all_feeds), *(table.name for table in service.tables)]
        known = [*dict.fromkeys(names)]
        hint = meant(name, known, f"service {service.name} has {', '.join(known)}")
        raise InvalidConfiguration.one(name, "is neither a feed nor a table", hint)
    if lacking := [feed.name for feed in feeds if feed.complete is None]:
        where = "[feeds.complete]" if service.feeds else "[envelope.complete]"
        raise InvalidConfiguration.one(
            f"feed {lacking[0]}",
            f"does not declare when it is complete{may_fill}",
            f"write {where} with a marker, for example{FEED_OF_TABLE if may_fill else ''}",
        )
    return feeds


def _sources(service: Service, name: str) -> list[str]:
    """The tables from which a state or a rollup is computed."""
    merged = [table.name for table in service.tables if table.may_merge_into(name)]
    return merged + [one for rollup in service.rollups if rollup.name == name for one in rollup.tables]


def others_of_table(service: Service, name: str) -> list[str]:
    """The other feeds that may fill the table with the name of this feed. A wait by that name is about the feed alone."""
    table = service.maker_of(name)
    if table is None or all(feed.name != name for feed in service.all_feeds):
        return []
    wanted = table.where.get("@feed")
    may_fill = (feed.name for feed in service.all_feeds if wanted is None or wanted.holds(feed.name))
    return [one for one in may_fill if one != name]


def open_periods(
    service: Service, feeds: Sequence[Feed], rows: Sequence[FeedPeriod], since: datetime | None, until: datetime
) -> list[Open]:
    """For each feed, the period that ends at `until`, and those before it that begin at `since` or later."""
    known = {(one.feed, Period(one.period, one.ends)): one for one in rows if one.service == service.name}
    found = []
    for feed in feeds:
        assert feed.complete is not None
        for period in _wanted(feed.complete, since, until):
            row = known.get((feed.name, period))
            if row is None or row.complete_at is None:
                found.append(Open(feed.name, period.start, UNSEEN if row is None else row.why or "it is checked"))
    return found


def begins(feeds: Sequence[Feed], since: datetime | None, until: datetime) -> datetime:
    """From then until `until`, the periods of all feeds are among those that are asked for."""
    return max(_wanted(feed.complete, since, until)[-1].start for feed in feeds if feed.complete is not None)


def _wanted(rule: Complete, since: datetime | None, until: datetime) -> list[Period]:
    """The last one first."""
    try:
        last = rule.period_before(until)
    except OverflowError:
        raise InvalidConfiguration.one(f"--until {until:%Y-%m-%dT%H:%M}", f"no {rule.period} ends then") from None
    if last.end != until:
        raise InvalidConfiguration.one(
            f"--until {until:%Y-%m-%dT%H:%M}", f"no {rule.period} ends then", f"one began {last}"
        )
    if since is not None and (until - since) / LENGTHS[rule.period] > MOST_PERIODS:
        problem = f"is more than {MOST_PERIODS:,} {rule.period}s before --until"
        raise InvalidConfiguration.one(f"--since {since:%Y-%m-%dT%H:%M}", problem)
    periods = [last]
    while since is not None and (earlier := rule.period_before(periods[-1].start)).start >= since:
        periods.append(earlier)
    return periods


def is_begun(lake: str, named: str) -> bool:
    """Whether jobs write to the lake, and the first of them has kept its declarations, unless others are named."""
    objects = open_objects(place_of(lake))
    return HOME in objects.folders() and (bool(named or kept_names(objects)) or has_ledger(lake))


def wait(
    look: Callable[[], T],
    timeout_s: float,
    every_s: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Looks at once, and then again until nothing is open or the time is over. The last answer."""
    ends = clock() + timeout_s
    while (found := look()) and (left := ends - clock()) > 0:
        sleep(min(every_s, left))
    return found
