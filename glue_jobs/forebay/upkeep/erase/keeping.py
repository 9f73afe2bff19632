"""The parts of declarations that must stay, so that people can be erased: the subject, and each declared column that has it.

In: a lake, and declarations that will be in force. Out: nothing, or `InvalidConfiguration`.
"""

from __future__ import annotations

from forebay.declaration.kept.in_force import kept_service
from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration
from forebay.upkeep.erase.places import lost_columns
from forebay.upkeep.erase.plan import Erasures


def must_keep_subject(lake: str, service: Service) -> None:
    """The erased are known by their values of one field. By another one, their late records would come back, those of others
    would stay out, and an erasure that continues would find the wrong people. So all erasures have one subject. In a column
    that is no longer declared so, nobody would look for them."""
    newest = Erasures(lake, service.name).newest()
    subject = (service.privacy and service.privacy.subject) or ""
    if newest is not None and newest.subject not in ("", subject):
        raise InvalidConfiguration.one(
            "privacy: subject",
            f"must not change: people were erased by the subject {newest.subject}, which keeps their late records out",
            f'write subject = "{newest.subject}"',
        )
    before = kept_service(lake, service.name)
    if subject and before is not None and before.subject == service.subject:
        for table, column in lost_columns(before, service):
            raise InvalidConfiguration.one(
                f"table {table}",
                f"column {column.name} has the subject {subject} of earlier rows, which an erasure needs",
                f'keep {{ name = "{column.name}", path = "{column.source}" }}; another column may have the same path',
            )
