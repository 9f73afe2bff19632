"""The parts of declarations that must stay, so that people can be erased: the subject, and each declared column that has it.

In: a lake, and declarations that will be in force, or that read its files into another lake. Out: nothing, or
`InvalidConfiguration`.
"""

from __future__ import annotations

from forebay.declaration.kept.in_force import kept_service
from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration
from forebay.privacy.erased import newest_list
from forebay.privacy.known_secret import must_be_known_secret
from forebay.privacy.vault import must_lie_apart
from forebay.upkeep.erase.places import lost_columns
from forebay.upkeep.erase.plan import Erasures


def must_fit_lake(lake: str, service: Service) -> None:
    """The checks of declarations against a lake that need no Spark."""
    must_keep_subject(lake, service)
    must_lie_apart(service.privacy, lake)


def must_keep_subject(lake: str, service: Service) -> None:
    """The erased are known by their values of one field. By another one, their late records would come back, those of others
    would stay out, and an erasure that continues would find the wrong people. So all erasures have one subject. In a column
    that is no longer declared so, nobody would look for them."""
    subject = _must_have_its_subject(lake, service)
    before = kept_service(lake, service.name)
    if subject and before is not None and before.subject == service.subject:
        for table, column in lost_columns(before, service):
            raise InvalidConfiguration.one(
                f"table {table}",
                f"column {column.name} has the subject {subject} of earlier rows, which an erasure needs",
                f'keep {{ name = "{column.name}", path = "{column.source}" }}; another column may have the same path',
            )


def must_leave_out_erased(lake: str, service: Service, loaded_by: str) -> None:
    """For files that the service `loaded_by` has loaded: only its own list, subject and secret find the people whose records
    are in them."""
    if not newest_list(lake, loaded_by):
        return
    if service.name != loaded_by:
        raise InvalidConfiguration.one(
            "--service",
            f"is {service.name}, and the service {loaded_by} loaded these files: records of erased people would come back",
            f'write name = "{loaded_by}" in its service.toml',
        )
    _must_have_its_subject(lake, service)
    must_be_known_secret(lake, service)


def _must_have_its_subject(lake: str, service: Service) -> str:
    newest = Erasures(lake, service.name).newest()
    subject = (service.privacy and service.privacy.subject) or ""
    if newest is not None and newest.subject not in ("", subject):
        raise InvalidConfiguration.one(
            "privacy: subject",
            f"must not change: people were erased by the subject {newest.subject}, which keeps their late records out",
            f'write subject = "{newest.subject}"',
        )
    return subject
