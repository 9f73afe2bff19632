"""The declarations with which a job works: checked against its lake, and kept there before the first batch with them.

In: declarations, the settings and a Spark session. Out: those in force. A mistake in them is `InvalidConfiguration`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forebay.declaration.kept.deployed import take_up_deployed
from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.loading import builtin_service, load_service
from forebay.declaration.service import Service
from forebay.declared_sql.check import check_expressions
from forebay.events import Emit, ServiceEvent
from forebay.privacy.known_secret import keep_secret
from forebay.record.apart import check_transforms
from forebay.record.transform import with_code_version
from forebay.settings import IngestSettings
from forebay.upkeep.erase.keeping import must_fit_lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, kw_only=True)
class DeclarationsChosen(ServiceEvent):
    """The job started with these declarations. `place` is the built-in example if neither `service` nor the lake has others."""

    version: str
    place: str


def check_in_lake(spark: SparkSession, lake: str, service: Service) -> None:
    """The checks that need more than the text of the declarations."""
    must_fit_lake(lake, service)
    check_expressions(spark, service)


def with_deployed(spark: SparkSession, service: Service, settings: IngestSettings, emit: Emit) -> Service:
    """The declarations that are in force once those of the deployment are taken up. A deployment may replace a function and
    the declaration that names it: the earlier ones no longer need theirs."""
    in_force = service
    if settings.deployed_service:
        take_up_deployed(settings.service, settings.deployed_service, settings.lake, emit=emit)
        in_force = load_service(settings.service)
    if in_force.version != service.version:
        check_in_lake(spark, settings.lake, in_force)
    check_transforms(in_force)
    return with_code_version(in_force)


def place_of(service: Service, settings: IngestSettings) -> str:
    return settings.service or ("the built-in example" if service == builtin_service() else "those of the lake")


def take_up(spark: SparkSession, lake: str, service: Service) -> None:
    check_in_lake(spark, lake, service)
    check_transforms(service)
    keep_in_lake(lake, service)


def keep_in_lake(lake: str, service: Service) -> None:
    """In the lake, before the first batch with these declarations."""
    keep_secret(lake, service)
    keep_in_force(lake, service)


def loaded(place: str) -> Service:
    return with_code_version(load_service(place))
