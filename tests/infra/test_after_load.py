"""The maintenance job may move or delete landed files only where a declaration says so."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from forebay.errors import InvalidConfiguration
from tests.infra.conftest import IN_A_VPC
from tests.infra.synthesized import Synthesized, synthesized
from tests.infra.test_vault import rights

TABLE = '\n[[tables]]\nname = "orders"\n'


def made(place: Path, rule: str, **settings: str) -> Synthesized:
    declared = place / "service.toml"
    declared.write_text(f'name = "shop"\n{rule}{TABLE}')
    return synthesized(place / "made", env="dev", service=str(declared), **settings)


def of_maintain(stack: Synthesized) -> tuple[set[str], set[str]]:
    """Actions of the maintenance job on objects that landed, and on the archive."""
    found = {(action, on) for action, on in rights(stack, "MaintainRole") if action.startswith("s3:")}
    landed = {action for action, on in found if "-landing-" in on}
    return landed, {f"{action} {on}" for action, on in found if "archive" in on}


@pytest.fixture(scope="module")
def moving(tmp_path_factory: pytest.TempPathFactory) -> Synthesized:
    place = tmp_path_factory.mktemp("moving")
    rule = 'after_load = { move = "s3://studio-archive/old/" }\nformer_archives = ["s3://former/", "s3://older"]'
    return made(place, rule, landing_prefix="in/", operators=IN_A_VPC["operators"])


def test_a_move_is_allowed_from_the_landing_prefix_to_the_archive_and_nowhere_else(moving: Synthesized) -> None:
    landed, archive = of_maintain(moving)
    assert {"s3:GetObject", "s3:GetObjectVersion", "s3:DeleteObject"} <= landed
    assert not {"s3:PutObject", "s3:DeleteObjectVersion"} & landed
    of_copies = {one.split()[0] for one in archive if "studio-archive/old/*" in one}
    assert of_copies == {"s3:PutObject", "s3:PutObjectTagging", "s3:GetObject", "s3:AbortMultipartUpload"}
    assert {one.split()[0] for one in archive} - of_copies == {"s3:ListBucket"}
    deletes = [on for action, on in rights(moving, "MaintainRole") if action == "s3:DeleteObject" and "-landing-" in on]
    assert all("/in/*" in on for on in deletes)


def test_the_ingest_job_may_read_each_archive_again_and_write_nothing_there(
    moving: Synthesized, chosen: Synthesized
) -> None:
    """Also former archives, although nothing is moved any more."""
    archives = ("studio-archive/old/*", "older/*")
    for stack, readable in ((moving, (*archives, "former/*")), (chosen, archives)):
        for archive in readable:
            assert {action for action, on in rights(stack, "IngestRole") if archive in on} == {"s3:GetObject"}, archive
        of_operator = stack.one("IAM::Policy", "OperatorDefaultPolicy")["PolicyDocument"]["Statement"]
        assert set(Counter(one["Sid"] for one in of_operator).values()) == {1}, "IAM refuses two statements of one name"
    assert {on for action, on in rights(moving, "MaintainRole") if "former/" in on or "older/" in on} == set()
    assert of_maintain(chosen)[1] == set()


def test_a_delete_needs_no_archive_and_without_a_rule_nothing_is_allowed(
    auto: Synthesized, chosen: Synthesized
) -> None:
    for stack, wanted in ((auto, True), (chosen, False)):
        landed, archive = of_maintain(stack)
        assert (("s3:DeleteObject" in landed), archive) == (wanted, set())


def test_an_archive_below_the_landing_prefix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="would load the moved files again"):
        made(
            tmp_path,
            'after_load = { move = "s3://studio-drops/in/old/" }',
            landing_bucket="studio-drops",
            landing_topic="arn:aws:sns:eu-west-1:210987654321:studio-drops",
            landing_prefix="in/",
        )
