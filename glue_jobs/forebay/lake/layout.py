"""forebay's own paths in a lake: every path under `_forebay/`, defined once. Pure.

In: the address of a lake, and a name. Out: addresses. Paths without a lake are relative to it, as names of tables are.
"""

from __future__ import annotations

HOME = "_forebay"
OWN = f"{HOME}/"
"""Tables of the service are never under it."""

LEDGER = f"{HOME}/ledger"
QUARANTINE = f"{HOME}/quarantine"
PARKED = f"{HOME}/parked"
QUALITY = f"{HOME}/quality"
IDS = f"{HOME}/ids"
COMPLETE = f"{HOME}/complete"
"""The hours and days of feeds, and whether each is complete."""
AFTER_LOAD = f"{HOME}/after_load"
"""The landed files that were moved or deleted after they were loaded."""
VAULT = f"{HOME}/vault"
"""The name of the vault, which is not in the lake, among the tables that a batch writes."""
OWN_TABLES = (LEDGER, QUARANTINE, PARKED, QUALITY, IDS, COMPLETE, AFTER_LOAD)
"""The tables that forebay keeps for itself, by their place in the lake."""
OWN_NAMES = {name.removeprefix(OWN): name for name in (LEDGER, QUARANTINE, PARKED, QUALITY, COMPLETE, AFTER_LOAD)}
"""The names that SQL and commands have for those that people look at."""

SERVICES = f"{HOME}/services"
"""The declarations in force, by service."""

DEPLOYED = f"{HOME}/deployed.json"
"""Names the declarations of the last deployment."""
REPLACED = f"{HOME}/replaced-declarations"
"""Declarations in whose place a deployment put newer ones, by their version."""
CHECKPOINT = f"{HOME}/checkpoints/ingest"
ERASED = f"{HOME}/erased"
TOKENS = f"{HOME}/tokens"
"""A token of each service's secret, by which the secret is known again."""
EXPIRED = f"{HOME}/expired"
"""Rows that left a table because they were too old, by table."""
HEALTH = f"{HOME}/health"
PROBES = f"{HOME}/probe"
PAUSED = f"{HOME}/paused"
LAST_RECONCILE = f"{HOME}/last-reconcile.json"
"""The result of the last run of reconcile."""
NOT_MERGED = f"{HOME}/not-merged"
"""Why a state or a rollup stays behind, by its name."""
TOMBSTONES = f"{HOME}/tombstones"
"""Tables of deleted keys, by the name of the state that lacks them."""
DERIVED_FROM = "forebay.derivedFrom"
"""The property of a table that is computed from another one, which it names. No file's rows are counted in it."""
DERIVED_BY = "forebay.derivedBy"
"""The property that says by which declaration it is computed, and the how manieth it is."""
PLANS = f"{HOME}/plans"
"""The plans of batches in progress, by service."""
ROLLBACK_PLAN = "plan.json"
"""The plan of a rollback in progress, in `rollback_of` the lake."""

KEPT_MESSAGES = "manifests/kept/"
"""Under a checkpoint: messages that could not be understood."""


def application(service: str, name: str) -> str:
    """The id of a service's transactions in Delta logs. `name` is the generation of its stream, or that of another work."""
    return f"forebay/{service}/{name}"


def is_erasure(app_id: str) -> bool:
    """Whether rows of erased people left under a transaction with this id."""
    return app_id == application(service_of(app_id), "erase")


def service_of(app_id: str) -> str:
    """The service whose transactions have this id; other applications' ids may look otherwise."""
    return app_id.removeprefix("forebay/").split("/")[0]


def table_path(lake: str, table: str) -> str:
    """The address of a table, one of the lake's or one of our own."""
    return f"{lake.rstrip('/')}/{table}"


def own_table(name: str) -> str:
    """`ledger` is `_forebay/ledger`."""
    return f"{HOME}/{name}"


def is_own(table: str) -> bool:
    return table.startswith(OWN)


def lease_of(lake: str, table: str) -> str:
    """The place of the lease that one who compacts or maintains this table must hold."""
    return f"{lake}/{HOME}/maintenance/{table}"


def after_load_of(lake: str, service: str) -> str:
    """The place of the lease that one who moves or deletes a service's landed files must hold."""
    return lease_of(lake, f"{AFTER_LOAD}/{service}")


def writer_of(lake: str, service: str) -> str:
    """The place of the lease that a driver must hold to load a service's files, whatever its checkpoint."""
    return f"{writers_of(lake)}/{service}"


def writers_of(lake: str) -> str:
    """The folder of these places, one for each service."""
    return f"{lake.rstrip('/')}/{HOME}/writers"


def backfill_of(lake: str) -> str:
    """The folder of the progress of backfills."""
    return f"{lake.rstrip('/')}/{HOME}/backfill"


def erased_of(lake: str, service: str) -> str:
    """The folder of the lists of erased subjects, and of the plans of erasures."""
    return f"{lake.rstrip('/')}/{ERASED}/{service}"


def known_token_of(lake: str, service: str) -> str:
    """The object with a token of the service's secret."""
    return f"{lake.rstrip('/')}/{TOKENS}/{service}"


def rollback_of(lake: str) -> str:
    """The folder of the plan of a running rollback."""
    return f"{lake.rstrip('/')}/{HOME}/rollback"


def new_tables_of(lake: str, service: str) -> str:
    """The folder of the tables that a service created today."""
    return f"{lake}/{HOME}/new-tables/{service}"


def last_versions_of(lake: str) -> str:
    """The folder of the versions that the ledger and the ids had after the last batch of each service."""
    return f"{lake.rstrip('/')}/{HOME}/last-versions"


def plans_of(lake: str, service: str) -> str:
    """The folder of the plan of a service's running retry."""
    return f"{lake}/{HOME}/tries/{service}"


def streams_of(lake: str) -> str:
    """The folder of the names of the streams that load files, one of each service."""
    return f"{lake.rstrip('/')}/{HOME}/streams"


def services_of(lake: str) -> str:
    """The folder of the declarations in force, and of the name of the first service."""
    return f"{lake.rstrip('/')}/{HOME}/services"


def skips_of(lake: str) -> str:
    """The folder of the files that operators skip."""
    return f"{lake.rstrip('/')}/{HOME}/skips"


def tombstones_of(state: str) -> str:
    """The table of the deleted keys of a state, relative to the lake."""
    return f"{TOMBSTONES}/{state}"


def verbs_of(lake: str) -> str:
    """The folder of the commands that operators ran."""
    return f"{lake.rstrip('/')}/{HOME}/verbs"
