"""The declarations of a service: its tables, and which records belong to them. `loading` makes one of files of TOML."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, get_args

from pydantic import Field, field_validator

from forebay.declaration.column import Column, Declared
from forebay.declaration.column_name import family_of
from forebay.declaration.feed import EVERYTHING, AfterLoad, Envelope, Feed, archive_of
from forebay.declaration.form import PARENT, Explosion, Form, Forms, Keys
from forebay.declaration.path import parse_path
from forebay.declaration.personal import PersonalField, of_flattened
from forebay.declaration.place import deciding
from forebay.declaration.privacy import Privacy
from forebay.declaration.rollup import Rollup
from forebay.declaration.schedule import Schedule
from forebay.declaration.table import Table
from forebay.errors import InvalidConfiguration
from forebay.lake.paused import ALL

CODE = "+"
"""In a version, before that of the functions' code."""

Overwritten = Literal["append", "ignore", "replace"]

OnDelete = Literal["ignore", "forget"]

Ignorable = Literal["folder-marker", "success-marker", "commit-marker", "temporary", "hidden"]
"""Kinds of objects that frameworks leave beside data, recognized by their names (`notification.debris`)."""

FILLED = {
    "version": "remove it",
    "paused": "remove it; `forebay pause TABLE` pauses a table",
    "erased": "remove it; `forebay privacy erase` erases a person",
}
"""Fields of a service that nobody declares."""


class Service(Declared):
    """Everything that one ingest job serves."""

    name: str = Field(description="the service's name; it is part of every transaction id, so it must not change")
    envelope: Envelope = Field(default_factory=lambda: Envelope(), description="what surrounds the records of a file")
    feeds: tuple[Feed, ...] = Field(
        (),
        description="instead of one envelope: kinds of files by prefix and bucket, each with what lies around its records; "
        "a file that matches none of them is ignored",
    )
    ignored: tuple[Ignorable, ...] = Field(
        get_args(Ignorable),
        description="objects that are not read, recognised by their names; the ledger has each as ignored; [] reads all",
    )
    shares_files_with: tuple[str, ...] = Field(
        (),
        description="services of the same lake whose files count as loaded here: this service under an earlier name, or one "
        "that fills the same tables",
    )
    tables: tuple[Table, ...] = Field(description="the tables, tried in order: the first that fits takes the record")
    rollups: tuple[Rollup, ...] = Field((), description="tables of aggregates over the rows of others")
    overwritten: Overwritten = Field(
        "append",
        description="when a key gets new content: load it too, ignore it, or let it replace the earlier content",
    )
    overwritten_below: dict[str, Overwritten] = Field(
        default_factory=dict,
        description="the same for keys with a prefix, such as in/corrections/; the longest matching prefix wins",
    )
    on_delete: OnDelete = Field(
        "ignore",
        description="when a key is deleted: ignore it, or forget the file, so that its rows leave the tables; deletions by "
        "lifecycle rules are always ignored; a change takes effect when the ingest job starts",
    )
    privacy: Privacy | None = Field(
        None, description="which fields of the records are personal, and how they are treated before anything is stored"
    )
    after_load: AfterLoad | None = Field(
        None, description="what maintenance does with landed files that were loaded; without it, they stay"
    )
    former_archives: tuple[str, ...] = Field(
        (),
        description="places that `after_load.move` named before: a replay looks for the copies of moved files there, too",
    )
    new_tables_per_day: int = Field(
        2000, ge=0, description="records of further new tables go to the quarantine that day"
    )
    keep_aside_days: int = Field(
        0, ge=0, le=36_500, description="days that quarantined and parked records are kept; 0: for ever"
    )
    schedules: dict[str, Schedule] = Field(
        default_factory=dict,
        description="schedules of the upkeep jobs, by name, instead of the defaults; `cdk deploy` applies them",
    )
    keep_verdicts_days: int = Field(
        400, ge=0, le=36_500, description="days that the verdicts of expectations are kept; 0: for ever"
    )
    version: str = Field(
        "", description="filled by forebay: a hash of the declarations' text; + and one of the functions' code"
    )
    paused: tuple[str, ...] = Field((), description="filled by forebay: tables that `forebay pause` named")
    erased: str = Field("", description="filled by forebay: the address of the list of erased subjects")

    @field_validator("former_archives")
    @classmethod
    def _are_places(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(archive_of, value))

    @property
    def archives(self) -> tuple[str, ...]:
        """The places that may have copies of moved files. The one where they go now is the first."""
        now = (self.after_load.move,) if self.after_load and self.after_load.move else ()
        return tuple(dict.fromkeys((*now, *self.former_archives)))

    @property
    def text_version(self) -> str:
        """The version of the declarations alone."""
        return self.version.partition(CODE)[0]

    def with_code(self, version: str) -> Service:
        """With the version of the functions' code that runs these declarations."""
        return self.model_copy(update={"version": f"{self.text_version}{CODE}{version}"})

    def with_paused(self, tables: Iterable[str]) -> Service:
        return self.model_copy(update={"paused": tuple(sorted(tables))})

    def with_erased(self, address: str) -> Service:
        return self.model_copy(update={"erased": address})

    @property
    def without_vault(self) -> Service:
        """The service without its vault, for files that are read again beside the lake: the vault already has their values."""
        return self.model_copy(update={"privacy": self.privacy.without_vault}) if self.privacy else self

    @property
    def subject(self) -> Keys:
        """The path of the field with a record's subject; empty if there is none."""
        return parse_path(self.privacy.subject).keys if self.privacy and self.privacy.subject else ()

    def transformed(self, table: Table) -> list[Column]:
        """The columns that the table's `transform` gets: none that could have the subject, by which an erasure finds rows."""
        spellings = of_flattened([PersonalField(self.subject, "dropped")], self.joints)
        of_subject = {family_of(step) for one in spellings for step in one.path}

        def may_name_somebody(column: Column) -> bool:
            keys = parse_path(column.source).keys if column.of_record else ()
            return bool(of_subject) and (keys[:1] == (PARENT,) or not of_subject.isdisjoint(map(family_of, keys)))

        return [column for column in table.transformed if not may_name_somebody(column)]

    @property
    def joints(self) -> tuple[str, ...]:
        """The separators of keys in tables that flatten objects."""
        return tuple(sorted({one.undeclared.flatten for one in self.tables if one.undeclared.flatten is not None}))

    @property
    def personal(self) -> tuple[PersonalField, ...]:
        """Personal fields, also under the keys that share their columns in tables that flatten objects."""
        return of_flattened(self.privacy.fields, self.joints) if self.privacy else ()

    def is_paused(self, table: str) -> bool:
        return table in self.paused or ALL in self.paused

    def maker_of(self, table: str) -> Table | None:
        """The declaration that a table of this name belongs to; None if there is none."""
        number = self.owner_of(table)
        return None if number is None else self.tables[number]

    def owner_of(self, table: str) -> int | None:
        """The number of that declaration: the first of `owners` that can make the name."""
        return next((number for number in self.owners if self.tables[number].makes(table)), None)

    @property
    def owners(self) -> list[int]:
        """The numbers of the declarations in the order of precedence, for names that several can have. A table's own
        declaration comes first, then the more specific family."""
        return sorted(range(len(self.tables)), key=lambda number: self.tables[number].names.rank)

    @cached_property
    def all_feeds(self) -> tuple[Feed, ...]:
        """Those that are declared, or the one of all files."""
        return self.feeds or (Feed(name=EVERYTHING, **dict(self.envelope)),)

    @property
    def forms(self) -> Forms:
        """The form of each feed's files."""
        feeds = self.all_feeds
        of_all: dict[str, Any] = {
            "personal": self.personal,
            "secret": self.secret,
            "subject": self.subject,
            "joints": self.joints,
            "erased": self.erased,
        }
        if self.privacy is not None:
            of_all |= {"vault": self.privacy.vault, "vault_key": self.privacy.vault_key}
        forms = (replace(feed.form, exploded=self._explosions(feed), **of_all) for feed in feeds)
        return Forms(tuple(feed.place for feed in feeds), tuple(forms))

    @property
    def form_of_all_feeds(self) -> Form:
        """The form that applies to records of every feed: personal fields, and all arrays of records."""
        forms = self.forms.forms
        exploded = tuple(one for form in forms for one in form.exploded)
        return replace(forms[0], inside=self.inside, exploded=exploded)

    @property
    def inside(self) -> tuple[Keys, ...]:
        """The arrays of documents in which the records of feeds lie."""
        return tuple(dict.fromkeys(keys for feed in self.all_feeds for keys in feed.form.inside))

    @property
    def vault(self) -> str:
        """The address of the vault; empty where there is none."""
        return self.privacy.vault if self.privacy else ""

    @property
    def secret(self) -> str:
        """The address of the secret of tokens; empty where there is none."""
        return self.privacy.secret if self.privacy else ""

    @property
    def exploded(self) -> tuple[str, ...]:
        """The arrays that tables explode."""
        return tuple(sorted({table.explode for table in self.tables if table.explode is not None}))

    @property
    def drops_duplicates(self) -> bool:
        return any(table.dedupe for table in self.tables)

    @property
    def asks_for_metadata(self) -> bool:
        """Whether the declarations use the objects' metadata."""
        return any(parse_path(path).origin == "metadata" for table in self.tables for path in table.named)

    def _explosions(self, feed: Feed) -> tuple[Explosion, ...]:
        """Those of tables that may take elements of the feed; an array that several explode keeps what any of them reads."""
        kept: dict[Keys, set[str]] = {}
        for table in self.tables:
            wanted = table.where.get("@feed")
            if table.explosion is not None and (wanted is None or wanted.holds(feed.name)):
                kept.setdefault(table.explosion.path, set()).update((*table.explosion.kept, *self.subject[:1]))
        return tuple(Explosion(path, tuple(sorted(keys))) for path, keys in sorted(kept.items()))

    def feed_of(self, bucket: str, key: str) -> Feed | None:
        """The feed that a file belongs to."""
        feeds = self.all_feeds
        number = deciding([feed.place for feed in feeds], bucket, key)
        return None if number is None else feeds[number]

    def rule_of(self, key: str) -> Overwritten:
        """The rule for a key that is overwritten."""
        fit = [prefix for prefix in self.overwritten_below if key.startswith(prefix)]
        return self.overwritten_below[max(fit, key=len)] if fit else self.overwritten

    @field_validator("name")
    @classmethod
    def _plain_name(cls, value: str) -> str:
        if not re.fullmatch(r"[a-z][a-z0-9\-]{0,30}", value):
            raise ValueError("must be a lowercase letter, then up to 30 lowercase letters, digits or -")
        return value

    @field_validator("feeds")
    @classmethod
    def _told_apart(cls, value: tuple[Feed, ...]) -> tuple[Feed, ...]:
        for what in ("name", "place"):
            seen: dict[Any, Feed] = {}
            for feed in value:
                other = seen.setdefault(getattr(feed, what), feed)
                if other is not feed:
                    raise ValueError(
                        f"{other.name} and {feed.name} have the same {'name' if what == 'name' else 'files'}"
                    )
        return value

    @field_validator("schedules")
    @classmethod
    def _plainly_named(cls, value: dict[str, Schedule]) -> dict[str, Schedule]:
        for name in value:
            if not re.fullmatch(r"(?=.{1,40}$)[a-z][a-z0-9]*(-[a-z][a-z0-9]*)*", name):
                raise ValueError(
                    f"{name!r} must be words of lowercase letters and digits with - between, such as night-asia"
                )
        return value


def declaration_of(service: Service, table: str) -> Table:
    """The declaration of this table; `InvalidConfiguration` if there is none."""
    found = service.maker_of(table)
    if found is None:
        some = ", ".join(sorted(one.name for one in service.tables)[:5])
        hint = f"service {service.name} declares {some}; --service names other declarations"
        raise InvalidConfiguration.one(f"table {table}", "no declaration defines it", hint)
    return found
