"""Lists, deletes or rewrites the objects in the landing bucket that hold erased people's records.

In: a plan whose rows have been removed, their landed objects, and the declared treatment. Out: `Landed`, one for each object.
`holding` reads whether other objects hold such records. The ledger first gets the future content of a rewritten object, and
only then is the object written. So the job recognises its notice: same key, same bytes, a duplicate. Where it would not, the
object stays (`rewriting`). Earlier versions that hold such records are deleted last. An object that somebody else writes in the
meantime is left unchanged, and listed. A second run finds the remaining work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from forebay.address import bucket_and_key
from forebay.content.end import hash_of
from forebay.content.limits import Limits
from forebay.declaration.form import PARENT
from forebay.declaration.kept.in_force import kept_services
from forebay.declaration.path import parse_path
from forebay.declaration.service import Service
from forebay.lake.layout import AFTER_LOAD, LEDGER, erased_of
from forebay.lake.lease import Lease, hold, holder
from forebay.lake.s3_objects import s3_client
from forebay.operate.lake_view import LakeView
from forebay.operate.people.erase_report import report_of
from forebay.operate.people.rewriting import NOT_LOADED, KeyInLedger, Version, keys_in_ledger
from forebay.plain import known
from forebay.privacy.subject import subject_spellings
from forebay.threads import answers_by, in_threads
from forebay.upkeep.erase.counts import change_hashes
from forebay.upkeep.erase.due import erased_by
from forebay.upkeep.erase.landed import Left, left_of
from forebay.upkeep.erase.plan import Done, ErasePlan, Erasures
from forebay.upkeep.erase.rows import Erased

OBJECTS_AT_ONCE = 8
WRITTEN_MEANWHILE = "was overwritten in the meantime"
MOVED = "was moved there by after_load, and nobody has read it: delete it by hand, with all of its versions"
FORGOTTEN = 'stays: the service {} has on_delete = "forget", and would remove rows of other people with it'
KEPT = (
    *("CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage", "ContentType", "Metadata"),
    *("ServerSideEncryption", "SSEKMSKeyId", "StorageClass"),
)
"""Final verdicts on an object."""


@dataclass(frozen=True)
class Landed:
    """`cleared`: no version of it holds a record of theirs. `why` it is not."""

    bucket: str
    key: str
    cleared: bool = False
    why: str = ""


def landed_of(view: LakeView, done: Iterable[Done]) -> list[Landed]:
    """The objects that their rows came from, in order. Copies that `after_load` made of any of their versions are not cleared:
    they are named, with the reason. A duplicate has the same records and no rows, and another service of the lake knows the
    object by another id."""
    ids = {file_id for one in done for file_id in one.files}
    rows = view.rows_with(LEDGER, "distinct bucket, key", "file_id", ids)
    found = {Landed(row["bucket"], row["key"]) for row in rows}
    return sorted(found | _copies_of(view, found), key=lambda one: (one.bucket, one.key))


def _copies_of(view: LakeView, objects: Iterable[Landed]) -> set[Landed]:
    """Those that `after_load` made."""
    names = {(one.bucket, one.key) for one in objects}
    moved = view.rows_with(AFTER_LOAD, "bucket, key, place", "key", {key for _, key in names})
    places = {row["place"] for row in moved if row["place"] and (row["bucket"], row["key"]) in names}
    return {Landed(*bucket_and_key(place), why=MOVED) for place in places}


def moved_away(view: LakeView) -> set[tuple[str, str]]:
    """The objects with a copy in an archive, which nobody searches. Any service of the lake may have moved them. The note from
    before a copy counts until another one follows."""
    ended = "select file_id from t where action <> 'started'"
    sql = f"select distinct bucket, key from t where place is not null and (action <> 'started' or file_id not in ({ended}))"
    return {(row["bucket"], row["key"]) for row in view.query(AFTER_LOAD, sql)}


def holding(service: Service, plan: ErasePlan, objects: Sequence[Landed], *, s3: Any = None) -> list[Landed]:
    """Objects with a version that holds records of theirs, or that nobody can read: `why` says so."""
    clearing = _Clearing(s3 or s3_client(), service, erased_by(plan, service), rewrites=False)
    return [one for one in in_threads(clearing.holding, objects, OBJECTS_AT_ONCE) if one is not None]


def clear_landing(
    view: LakeView, service: Service, plan: ErasePlan, found: Sequence[Landed], *, s3: Any = None
) -> list[Landed]:
    how = service.privacy.landing if service.privacy else "list"
    copies = [one for one in found if one.why == MOVED]
    objects = [one for one in found if one.why != MOVED] if how != "list" else []
    if not copies + objects:
        return [*found]
    s3 = s3 or s3_client()
    now = {one: _copy_looked_for(s3, one) for one in copies} | _kept_for_rows(view, objects)
    there = [one for one in objects if one not in now]
    now |= dict(zip(there, _cleared_of(view, service, plan, there, how, s3) if there else (), strict=True))
    return [now.get(one, one) for one in found]


def _kept_for_rows(view: LakeView, found: Sequence[Landed]) -> dict[Landed, Landed]:
    """The objects that stay, because a service of the lake takes the rows of deleted files out. Those of other people in any
    version would leave with the one that is deleted."""
    forgetting = [one.name for one in kept_services(view.lake) if one.on_delete == "forget"]
    if not forgetting:
        return {}
    of_keys = view.rows_with(LEDGER, "distinct service, bucket, key", "key", {one.key for one in found})
    names = {(row["bucket"], row["key"]): row["service"] for row in of_keys if row["service"] in forgetting}
    return {
        one: replace(one, why=FORGOTTEN.format(names[one.bucket, one.key]))
        for one in found
        if (one.bucket, one.key) in names
    }


def _cleared_of(
    view: LakeView, service: Service, plan: ErasePlan, found: Sequence[Landed], how: str, s3: Any
) -> list[Landed]:
    clearing = _Clearing(s3, service, erased_by(plan, service), rewrites=how == "rewrite")
    rows = keys_in_ledger(view, {(one.bucket, one.key) for one in found})
    others = [one for one in kept_services(view.lake) if one.name != service.name]
    of = {one: KeyInLedger(service, rows[one.bucket, one.key], others) for one in found}
    made = answers_by(clearing.rewriting, found, OBJECTS_AT_ONCE)
    new = {one: change for one, change in made.items() if change and not of[one].why_not(*change)}
    hashes = {row["file_id"]: to for one, (version, to) in new.items() for row in of[one].equals(version)}
    change_hashes(view.lake, f"{plan.app_id}/landing", plan.number, hashes)
    noted = {one: to for one, (_, to) in new.items()}
    return in_threads(lambda one: clearing.clear(one, of[one], noted.get(one)), found, OBJECTS_AT_ONCE)


def held_by_us(lake: str, service: Service, wait_s: float, tell: Callable[[str], None]) -> Lease:
    """The lease of the service's erasures."""
    place = erased_of(lake, service.name)
    if wait_s and (other := holder(place)) is not None:
        tell(f"waiting for the erasure of {other.who}; if that job died, this takes a minute")
    return hold(place, wait_s=wait_s)


def clear_again(
    view: LakeView,
    service: Service,
    *,
    search: bool = False,
    wait_s: float = 0,
    tell: Callable[[str], None] = lambda line: None,
) -> int:
    """Clears the remains of earlier erasures: permissions, the declaration or the objects may have changed. Where objects
    are only listed, a `search` reads them again. Returns the number of objects that no longer hold such a record."""
    erasures, since = Erasures(view.lake, service.name), 0
    only_lists = service.privacy is None or service.privacy.landing == "list"
    if only_lists and not search:
        return 0
    again = _looked_again if only_lists else clear_landing
    lease = held_by_us(view.lake, service, wait_s, tell)
    try:
        for plan in erasures.plans():
            noted = [Landed(**known(Landed, one)) for one in (erasures.landing(plan) if plan.ended else None) or ()]
            noted += _copied_since(view, noted)
            left = [one for one in noted if not one.cleared]
            if not left:
                continue
            now = dict(zip(left, again(view, service, plan, left), strict=True))
            erasures.note_landing(plan, [now.get(one, one) for one in noted])
            erasures.keep_report(plan, report_of(view, service, plan))
            since += sum(one.cleared for one in now.values())
            lease.check()
    finally:
        lease.let_go()
    return since


def _copied_since(view: LakeView, noted: Sequence[Landed]) -> list[Landed]:
    """Another service may have moved objects that an erasure left where they were."""
    known = {(one.bucket, one.key) for one in noted}
    copies = _copies_of(view, [one for one in noted if not one.cleared and one.why != MOVED])
    return [one for one in copies if (one.bucket, one.key) not in known]


def _looked_again(
    view: LakeView, service: Service, plan: ErasePlan, found: Sequence[Landed], *, s3: Any = None
) -> list[Landed]:
    s3, there = s3 or s3_client(), [one for one in found if one.why != MOVED]
    hold_them = {(one.bucket, one.key): one for one in holding(service, plan, there, s3=s3)}
    copies = [_copy_looked_for(s3, one) for one in found if one.why == MOVED]
    hold_them |= {(one.bucket, one.key): one for one in copies}
    return [hold_them.get((one.bucket, one.key), replace(one, cleared=True, why="")) for one in found]


def _said_by(refused: ClientError) -> str:
    code = refused.response["Error"].get("Code", "")
    return WRITTEN_MEANWHILE if code == "PreconditionFailed" else f"S3 answered {code}"


def _versions(s3: Any, one: Landed) -> list[tuple[str, bool]]:
    """The newest one first; whether it is the object now. Keys that begin with this one come after it."""
    pages = s3.get_paginator("list_object_versions").paginate(Bucket=one.bucket, Prefix=one.key)
    every = (version for page in pages for version in page.get("Versions", ()))
    found = takewhile(lambda version: version["Key"] == one.key, every)
    return [(version["VersionId"], version["IsLatest"]) for version in found]


def _copy_looked_for(s3: Any, copy: Landed) -> Landed:
    """A copy of `after_load` is cleared once a person has deleted it, with all of its versions, or if it was never made."""
    try:
        return copy if _versions(s3, copy) else replace(copy, cleared=True, why="")
    except (ClientError, BotoCoreError):
        return copy


class _Clearing:
    """The clearing of a service's objects."""

    def __init__(self, s3: Any, service: Service, erased: Erased, *, rewrites: bool) -> None:
        self._s3, self._erased, self._rewrites = s3, erased, rewrites
        exploded = [parse_path(one).keys for one in service.exploded]
        around = ((), (PARENT,), *exploded, *service.inside)
        self._paths = tuple(
            keys + path for keys in around for path in subject_spellings(service.subject, service.joints)
        )
        self._forms = service.forms

    def holding(self, one: Landed) -> Landed | None:
        """None where it holds nothing of theirs."""
        try:
            found = [self._looked(one, version_id)[0] for version_id, _ in _versions(self._s3, one)]
        except ClientError as refused:
            return replace(one, why=_said_by(refused))
        why = next((left.unclear for left in found if left.unclear), "")
        return replace(one, why=why) if why or any(left.records for left in found) else None

    def rewriting(self, one: Landed) -> tuple[Version, str] | None:
        """The newest version and the hash of its new content, if it may be rewritten."""
        try:
            newest = next((self._looked(one, id_) for id_, newest in _versions(self._s3, one) if newest), None)
        except ClientError:
            return None  # `clear` meets it again, and says why
        return (newest[1], hash_of(newest[0].content)) if newest and newest[0].content and self._rewrites else None

    def clear(self, one: Landed, ledger: KeyInLedger, noted: str | None) -> Landed:
        """`noted` is the hash that the ledger has of what is written."""
        try:
            return self._cleared(one, ledger, noted)
        except ClientError as refused:
            return replace(one, why=_said_by(refused))

    # --- inside ---

    def _cleared(self, one: Landed, ledger: KeyInLedger, noted: str | None) -> Landed:
        versions, why, gone, written = _versions(self._s3, one), "", list[str](), ""
        for version_id, newest in versions:
            left, version, answer = self._looked(one, version_id)
            stays = left.unclear or (self._stays(version, ledger, newest) if left.content else "")
            if newest and left.content and not stays and (new := hash_of(left.content)) != noted:
                stays = ledger.why_not(version, new) or WRITTEN_MEANWHILE
            why = why or stays
            if not left.records or stays:
                continue
            if newest and left.content:
                written = self._write(one, left, answer)
            gone.append(version_id)
        if not written and len(gone) < len(versions) and any(newest and id_ in gone for id_, newest in versions):
            self._s3.delete_object(Bucket=one.bucket, Key=one.key)  # a mark: no earlier version becomes the object
        for version_id in gone:
            if version_id != written:
                self._s3.delete_object(Bucket=one.bucket, Key=one.key, VersionId=version_id)
        return replace(one, cleared=not why, why=why)

    def _stays(self, version: Version, ledger: KeyInLedger, newest: bool) -> str:
        """Why a version stays that has records of others, too. Nothing is left of those of an earlier one."""
        if not self._rewrites:
            return "has records of others"
        return ("" if ledger.knows(version) else NOT_LOADED) if newest else ledger.why_kept(version)

    def _looked(self, one: Landed, version_id: str) -> tuple[Left, Version, Mapping[str, Any]]:
        """The rest of a version, and the answer of S3 about it. The id is null where the bucket kept no versions then."""
        answer = self._s3.get_object(Bucket=one.bucket, Key=one.key, VersionId=version_id)
        version = Version(version_id, answer["ETag"].strip('"'), "")
        if answer["ContentLength"] > (most := Limits().piece_bytes):
            return Left(unclear=f"is larger than {most:,} bytes"), version, answer
        raw, form = answer["Body"].read(), self._forms.of(one.bucket, one.key)
        left = left_of(raw, one.key, form, self._paths, self._erased)
        return left, replace(version, content_hash=hash_of(raw)), answer

    def _write(self, one: Landed, left: Left, before: Mapping[str, Any]) -> str:
        """The id of the new version."""
        kept = {name: before[name] for name in KEPT if before.get(name)}
        answer = self._s3.put_object(Bucket=one.bucket, Key=one.key, Body=left.content, IfMatch=before["ETag"], **kept)
        return str(answer.get("VersionId") or "null")
