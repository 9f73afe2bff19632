"""The report of an erasure: which rows left which table, when they are gone from disk, and where their records still are.

In: a plan. Out: the report as JSON, with a signature: an HMAC of the service's secret. Anyone with the secret can check that
nobody changed the report; nobody else can.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from typing import Any

from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.operate.lake_view import LakeView
from forebay.privacy.secret import secret_at
from forebay.upkeep.erase.plan import ErasePlan, Erasures


def report_of(view: LakeView, service: Service, plan: ErasePlan) -> dict[str, Any]:
    """Signed, so that a reader who has the secret knows that nobody changed it."""
    erasures = Erasures(view.lake, service.name)
    done = [one for _, one in sorted(erasures.done(plan).items())]
    tables = [
        {
            "table": one.table,
            "rows": one.rows,
            "version": one.version,
            "at": one.at,
            "due_at": one.due_at,
            "gone": one.gone is not None,
            "objects_deleted": one.gone,
            "refused": one.refused,
            "searched": one.searched,
            "dropped": one.dropped,
            "rows_not_judged": one.unjudged_rows,
            "objects_not_judged": one.unjudged_objects,
        }
        for one in done
    ]
    landing = erasures.landing(plan) or []
    not_judged = {
        "rows": sum(one.unjudged_rows for one in done),
        "objects": sum(one.unjudged_objects for one in done) + plan.vault_unjudged,
    }
    from_tables = all(one.gone is not None and not one.refused for one in done) and not any(not_judged.values())
    facts = {
        "erasure": plan.number,
        "service": plan.service,
        "asked_at": plan.at,
        "people": list(plan.tokens),
        "rows_became": "anonymised" if plan.anonymise else "deleted",
        "tables": tables,
        "vault_rows": plan.vault_rows,
        "not_judged": not_judged,
        "landing": landing,
        "landing_not_read": _not_read(plan),
        "gone_by": max((one.due_at for one in done), default=plan.at),
        "is_gone_from_tables": from_tables,
        "is_gone": from_tables and plan.unseen_objects == 0 and all(one["cleared"] for one in landing),
    }
    return {**facts, "signature": _signature(facts, _secret(service))}


def renewed_report(view: LakeView, service: Service, number: int) -> dict[str, Any] | None:
    """The kept report, updated where something left the disk since; None of an erasure that has not ended. `Halt` where the
    kept one was changed."""
    erasures = Erasures(view.lake, service.name)
    report = erasures.report(number)
    if report is not None and not is_signed(report, service):
        raise Halt(f"the signature of report {number} does not hold: it was changed, or signed with another secret")
    for plan in erasures.plans():
        if plan.number == number and plan.ended and not (report and report["is_gone"]):
            report = report_of(view, service, plan)
            erasures.keep_report(plan, report)
    return report


def _not_read(plan: ErasePlan) -> Mapping[str, int] | None:
    """Objects that may hold records of theirs, although no row says so; None where nobody counted."""
    return None if plan.unseen_objects < 0 else {"objects": plan.unseen_objects, "bytes": plan.unseen_bytes}


def is_signed(report: Mapping[str, Any], service: Service) -> bool:
    facts = {name: value for name, value in report.items() if name != "signature"}
    return hmac.compare_digest(_signature(facts, _secret(service)), str(report.get("signature", "")))


def _signature(facts: Mapping[str, Any], secret: bytes) -> str:
    text = json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()
    return hmac.digest(secret, b"erasure report\0" + text, "sha256").hex()


def _secret(service: Service) -> bytes:
    assert service.privacy is not None
    return secret_at(service.privacy.secret)
