"""The entry of a file in the ledger of a deployed lake; None before its first batch."""

from __future__ import annotations

from collections.abc import Callable

from forebay.operate.stack.deployment import Deployment

__all__ = ["outcome_in_ledger"]


def outcome_in_ledger(on: Deployment) -> Callable[[str], str | None]:
    from forebay.operate.lake_view import LakeView
    from forebay.operate.looking.files import versions_of

    def outcome(key: str) -> str | None:
        found = versions_of(LakeView(on.outputs["LakeUri"]), on.landing_buckets[0], key)
        return found[0].outcome if found else None

    return outcome
