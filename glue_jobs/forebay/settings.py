"""The settings of a job: where the queue, the lake and the declarations are. One declaration each: name, type,
default, meaning.

In: a job's arguments in Glue's style (`--queue_url X` or `--queue-url X`), or keywords from the command line. Out: a frozen,
checked object. Bad values and misspelt names are refused at once, all together (`InvalidConfiguration`). Arguments that do not
resemble ours belong to the platform: they are ignored, and named in `passed_over`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from forebay.address import bucket_and_key, is_s3, lake_address, overlap
from forebay.errors import InvalidConfiguration, Problem
from forebay.events import where_numbers_go
from forebay.lake.layout import CHECKPOINT
from forebay.refusal import problems_of

IGNORE_ARGUMENTS = "ignore_arguments"
"""Names of arguments to ignore, comma-separated. After a rollback to this code, a run also gets arguments of later code."""
AS_MISSPELT = 0.75
"""How similar a name must be to one of ours to count as a misspelling, by difflib. `metrics` and `enable_metrics` are 0.67."""


def _lake(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return lake_address(value)
        except InvalidConfiguration as refused:
            raise ValueError(f"{refused}".removeprefix(f"lake {value}: ")) from None
    return value


def _landing(value: Any) -> Any:
    one = r"s3://[a-z0-9][a-z0-9.-]+(/[^,]*)?"
    if not isinstance(value, str) or not re.fullmatch(f"{one}(,{one})*", value):
        raise ValueError(
            "must be s3://bucket/ or s3://bucket/prefix/, such as s3://studio-drops/in/; or several, comma-separated"
        )
    return value


Landing = Annotated[str, BeforeValidator(_landing)]
Lake = Annotated[str, BeforeValidator(_lake)]
Numbers = Annotated[str, AfterValidator(where_numbers_go)]


class JobSettings(BaseModel):
    """The settings of every job."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lake: Lake = Field(description="where the tables are: s3://bucket/prefix, or a folder such as ./lake")
    service: str = Field(
        "",
        description="the declarations: a folder, service.toml or s3:// prefix; empty: those in force in the lake, and in a new "
        "lake the built-in example",
    )
    deployed_service: str = Field(
        "",
        description="the declarations of the deployment, in one file; the job copies them to `service`, unless those are newer",
    )
    metrics: Numbers = Field(
        "none",
        description="where the events' metrics are published, besides the log: none, cloudwatch, or cloudwatch:NAMESPACE",
    )
    metrics_of_tables: str = Field(
        "",
        description="with cloudwatch: tables whose own metrics are published, comma-separated, or *; empty: only their errors",
    )

    _passed_over: tuple[str, ...] = PrivateAttr(())

    @property
    def passed_over(self) -> tuple[str, ...]:
        """Names of arguments that neither we nor Glue, as we know it, act on."""
        return self._passed_over

    @classmethod
    def from_argv(cls, argv: Sequence[str]) -> Self:
        """From a job's arguments. Glue hands a script its own arguments too, and an administrator may add some."""
        problems: list[Problem] = []
        values: dict[str, str | bool] = {}
        strange: list[str] = []
        pairs = list(_pairs(argv, cls))
        ignored = {IGNORE_ARGUMENTS, *_ignored(pairs)}
        for name, value in pairs:
            if name in ignored:
                continue
            if name in cls.model_fields:
                if value is None:
                    problems.append(Problem(f"--{name}", "has no value", f"{cls.model_fields[name].description}"))
                else:
                    values[name] = value
            elif near := difflib.get_close_matches(name, cls.model_fields, 1, AS_MISSPELT):
                problems.append(Problem(f"--{name}", "is unknown", f"did you mean --{near[0]}?"))
            elif not _belongs_to_glue(name):
                strange.append(name)
        try:
            settings = cls(**values)
        except ValidationError as refused:
            problems += problems_of(refused, lambda path: f"--{path}")
        if problems:
            raise InvalidConfiguration(problems)
        settings._passed_over = tuple(strange)
        return settings


def _pairs(argv: Sequence[str], cls: type[JobSettings]) -> Iterator[tuple[str, str | bool | None]]:
    """Names, spelt with underscores, and values; None where there is none, True for a flag of ours."""
    pending = list(argv)
    while pending:
        word = pending.pop(0)
        name, equals, inline = word.lstrip("-").partition("=")
        name = name.replace("-", "_")
        if equals:
            yield name, inline
        elif word.startswith("--") and pending and not pending[0].startswith("--"):
            yield name, pending.pop(0)
        else:
            flag = name in cls.model_fields and cls.model_fields[name].annotation is bool
            yield name, True if flag else None


def _ignored(pairs: Sequence[tuple[str, str | bool | None]]) -> list[str]:
    given = [str(value) for name, value in pairs if name == IGNORE_ARGUMENTS]
    return [name.replace("-", "_") for name in names_in(",".join(given))]


class IngestSettings(JobSettings):
    """The settings of the ingest job."""

    queue_url: str = Field(min_length=1, description="the SQS queue that receives the landing bucket's notifications")
    landing_buckets: str = Field(
        "", description="names of buckets, comma-separated; files in other buckets are ignored; empty: all buckets"
    )
    checkpoint: str = Field("", description=f"where Spark keeps the stream's progress; empty: <lake>/{CHECKPOINT}")
    drain: bool = Field(False, description="stop when the queue is empty, instead of continuing to run")
    drain_cap_s: int = Field(
        3600, ge=1, le=604_800, description="with drain: seconds after which to stop, even if the queue is not empty"
    )
    trigger_s: float = Field(
        60,
        ge=0,
        le=3600,
        description="seconds between batches of a continuous run; after a full batch, there is no pause",
    )
    max_files_per_batch: int = Field(2000, ge=1, le=100_000, description="the largest number of files in a batch")
    visibility_timeout_s: int = Field(
        300, ge=10, le=43_200, description="seconds for which SQS hides a received message; the driver renews it"
    )
    wait_s: int = Field(10, ge=0, le=20, description="seconds for which one poll waits for a message")
    task_memory_bytes: int = Field(
        4 << 30,
        ge=1 << 30,
        description="the memory that one task may use while it reads; a file that needs more is quarantined",
    )
    max_file_bytes: int = Field(
        1 << 30,
        ge=1 << 20,
        le=(1 << 31) - 1,
        description="the largest file that must be read whole, or unpacked archive; larger ones are quarantined",
    )
    tables_at_once: int = Field(4, ge=1, le=64, description="the number of tables that are committed at the same time")
    lease_wait_s: float = Field(
        90,
        ge=0,
        le=3600,
        description="seconds to wait for another driver of this checkpoint; the lease of a crashed driver ends after 60",
    )
    late_commit_wait_s: float = Field(
        960,
        ge=0,
        le=3600,
        description="how many seconds a new driver waits for a table's commit by a dead driver, before it gives up the table "
        "in that batch; S3 may accept such a commit for 15 minutes",
    )
    merge_every_s: float = Field(
        60,
        ge=0,
        le=86_400,
        description="seconds between merges of tables in mode merge; 0: `forebay merge` runs elsewhere",
    )
    catalog: str = Field(
        "", description="the database of the Glue Data Catalog in which the tables are registered; empty: none"
    )

    @model_validator(mode="after")
    def _lands_outside_the_lake(self) -> Self:
        if is_s3(self.lake) and (bucket := bucket_and_key(self.lake)[0]) in names_in(self.landing_buckets):
            raise ValueError(f"landing_buckets has {bucket}, where the lake is: {ITS_OWN_FILES}")
        return self

    @property
    def checkpoint_folder(self) -> str:
        return self.checkpoint.rstrip("/") or f"{self.lake}/{CHECKPOINT}"


class CompactSettings(JobSettings):
    """The settings of the compaction job."""

    tables: str = Field(
        "", description="names of tables, comma-separated; empty: all tables of the lake, and forebay's own"
    )
    round: Literal["first", "second"] = Field(
        "first",
        description="first combines small files into medium ones; second (weekly) combines those into large, ordered files",
    )
    group: str = Field("", description="only tables of this group of the declarations; empty: all groups")
    now: bool = Field(False, description="compact everything possible, ignoring thresholds")
    hot: bool = Field(
        False, description="also compact partitions that got data recently, if the other thresholds are met"
    )
    budget_bytes: int = Field(0, ge=0, description="the most bytes that one run reads; 0: no limit")
    budget_dpu_s: float = Field(0, ge=0, description="the most DPU-seconds that one run may plan for; 0: no limit")
    tables_at_once: int = Field(2, ge=1, le=64, description="the number of tables that are processed at the same time")

    @property
    def table_names(self) -> list[str]:
        return names_in(self.tables)


class MaintainSettings(JobSettings):
    """The settings of the maintenance job."""

    tables: str = Field(
        "", description="names of tables, comma-separated; empty: all tables of the lake, and forebay's own"
    )
    vacuum: Literal["lite", "full", "none"] = Field(
        "lite",
        description="lite (daily) deletes files that the log no longer needs; full (weekly) also lists all files",
    )
    longest_reader_hours: float = Field(
        24, ge=0, le=8760, description="hours that the slowest reader takes; files are kept for at least as long"
    )
    checkpoint_after: int = Field(
        100, ge=1, description="the number of commits after which a table's log gets a checkpoint"
    )
    delete_orphans: bool = Field(False, description="delete the files that no log names, instead of only listing them")
    tables_at_once: int = Field(2, ge=1, le=64, description="the number of tables that are processed at the same time")

    @property
    def table_names(self) -> list[str]:
        return names_in(self.tables)


class MergeSettings(JobSettings):
    """The settings of the merge job."""

    tables: str = Field(
        "", description="names of tables of changes or of states, comma-separated; empty: all declared ones"
    )
    tables_at_once: int = Field(2, ge=1, le=64, description="the number of tables that are processed at the same time")

    catalog: str = Field(
        "", description="the database of the Glue Data Catalog in which the states are registered; empty: none"
    )

    @property
    def table_names(self) -> list[str]:
        return names_in(self.tables)


class ReconcileSettings(JobSettings):
    """The settings of the reconcile job."""

    landing: Landing = Field(
        description="where files land: s3://bucket/in/, or several places, comma-separated; with %Y, %m, %d for the day in "
        "keys, only the keys of those days are listed"
    )
    queue_url: str = Field(min_length=1, description="the SQS queue to which missed files are announced")
    look_back_hours: float = Field(
        15 * 24,
        gt=0,
        le=24 * 365,
        description="how far back to look for files, in hours; more than the 14 days for which SQS keeps a message",
    )
    settle_hours: float = Field(
        6, ge=0, le=24 * 7, description="leave out files of the newest hours, whose messages may still be on their way"
    )

    @model_validator(mode="after")
    def _looks_at_something(self) -> Self:
        if self.settle_hours >= self.look_back_hours:
            raise ValueError(f"settle_hours, {self.settle_hours:g}, must be less than look_back_hours")
        return self

    @model_validator(mode="after")
    def _looks_outside_the_lake(self) -> Self:
        if within := [place for place in self.landing.split(",") if overlap(place, self.lake)]:
            raise ValueError(f"landing {within[0]} and the lake must not overlap: {ITS_OWN_FILES}")
        return self


ITS_OWN_FILES = "its own files would be loaded, again and again"


def names_in(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _belongs_to_glue(name: str) -> bool:
    return name.isupper() or bool(_GLUE_ARGUMENTS.fullmatch(name))


_GLUE_ARGUMENTS = re.compile(
    "TempDir|scriptLocation|conf|no_index|datalake_formats|class|spark_event_logs_path|encryption_type|user_jars_first|executor_cores"
    "|custom_log.*|(enable|continuous_log|extra|additional|python|job|auto_scale)_.*"
)
"""`--no-index` is the value that our stack gives to `--python-modules-installer-option`.
https://docs.aws.amazon.com/glue/latest/dg/aws-glue-programming-etl-glue-arguments.html"""
