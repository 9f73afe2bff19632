"""How doctor reads the statements of a bucket's policy that deny."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forebay.operate.doctor.denial import Asked, Denial, Requests, denials

ROLE = "arn:aws:iam::123456789012:role/forebay-ingest"
ROOT = "arn:aws:iam::123456789012:root"
OURS = Requests(ROLE, "AROA1", "123456789012", ("vpce-1",))
BUCKET = "arn:aws:s3:::drops"
READ = Asked(("s3:GetObject", "s3:GetObjectVersion"), f"{BUCKET}/in/")
LIST = Asked(("s3:ListBucket",), BUCKET, is_below=False)
DENY: dict[str, Any] = {"Effect": "Deny", "Principal": "*", "Action": "s3:GetObject*", "Resource": f"{BUCKET}/*"}


def found(**changes: Any) -> list[Denial]:
    policy = {key: value for key, value in {**DENY, **changes}.items() if value is not None}
    return list(denials(json.dumps({"Statement": [policy]}), OURS, [READ, LIST]))


def test_a_statement_is_named_with_what_it_denies() -> None:
    assert found(Sid="NotYours") == [Denial("NotYours", READ.actions, f"{BUCKET}/*", ())]
    assert found(Action=["s3:*"], Resource=[BUCKET, f"{BUCKET}/*"]) == [
        Denial("number 1", READ.actions, f"{BUCKET}/*", ()),
        Denial("number 1", LIST.actions, BUCKET, ()),
    ]
    assert found(Effect="Allow") == []
    assert list(denials("", OURS, [READ])) == []


@pytest.mark.parametrize(
    ("resource", "denies"),
    [
        (f"{BUCKET}/in/*", True),
        (f"{BUCKET}/in/secret/*", True),
        (f"{BUCKET}/in/a.json", True),
        (f"{BUCKET}/i?/*", True),
        ("*", True),
        (f"{BUCKET}/*.json", True),
        (f"{BUCKET}/in", False),
        (f"{BUCKET}/out/*", False),
        ("arn:aws:s3:::drops-2/*", False),
    ],
)
def test_a_part_of_the_prefix_is_enough(resource: str, denies: bool) -> None:
    assert bool(found(Resource=resource)) is denies


@pytest.mark.parametrize(
    ("changes", "denies"),
    [
        ({"Principal": {"AWS": "*"}}, True),
        ({"Principal": {"AWS": [ROLE]}}, True),
        ({"Principal": {"AWS": ROOT}}, True),
        ({"Principal": {"AWS": "123456789012"}}, True),
        ({"Principal": {"AWS": "arn:aws:sts::123456789012:assumed-role/forebay-ingest/GlueJobRunnerSession"}}, True),
        ({"Principal": {"AWS": f"{ROLE}-2"}}, False),
        ({"Principal": {"Service": "s3.amazonaws.com"}}, False),
        ({"Principal": {"AWS": "arn:aws:sts::123456789012:assumed-role/forebay-ingest-2/x"}}, False),
        ({"Principal": None, "NotPrincipal": {"AWS": [ROLE, ROOT]}}, False),
        ({"Principal": None, "NotPrincipal": {"AWS": [f"{ROLE}-2", ROOT]}}, True),
        ({"Principal": None, "NotPrincipal": {"AWS": ["*"]}}, False),
        ({"Principal": None, "NotPrincipal": {"AWS": f"{ROLE}-2"}}, True),
        ({"Action": "s3:PutObject"}, False),
        ({"Action": None, "NotAction": "s3:PutObject"}, True),
        ({"Action": None, "NotAction": ["s3:Get*", "s3:List*"]}, False),
        ({"Resource": None, "NotResource": f"{BUCKET}/in/*"}, False),
        ({"Resource": None, "NotResource": f"{BUCKET}/in/public/*"}, True),
    ],
)
def test_it_must_be_about_the_role_and_what_the_role_does(changes: dict[str, Any], denies: bool) -> None:
    assert any(one.actions == READ.actions for one in found(**changes)) is denies


@pytest.mark.parametrize(
    ("condition", "undecided"),
    [
        ({"Bool": {"aws:SecureTransport": "false"}}, None),
        ({"NumericLessThan": {"s3:TlsVersion": "1.2"}}, None),
        ({"NumericLessThan": {"s3:TlsVersion": 1.2}, "Bool": {"aws:SecureTransport": True}}, None),
        ({"Null": {"s3:if-none-match": "true"}}, None),
        ({"ArnNotLike": {"aws:PrincipalArn": f"{ROLE}*"}}, None),
        ({"ArnNotEquals": {"aws:PrincipalArn": f"{ROLE}-2"}}, ()),
        ({"StringLike": {"aws:PrincipalArn": [f"{ROLE}-2", "arn:aws:iam::*:role/forebay-*"]}}, ()),
        ({"StringNotLike": {"aws:userId": ["AROA1:*", "AIDA2"]}}, None),
        ({"StringNotLike": {"aws:userId": ["AROA2:*"]}}, ()),
        ({"StringNotEquals": {"aws:PrincipalAccount": "123456789012"}}, None),
        ({"StringNotEqualsIfExists": {"aws:PrincipalAccount": ["210987654321"]}}, ()),
        ({"Null": {"aws:PrincipalArn": "true"}}, None),
        ({"NumericNotEquals": {"s3:TlsVersion": "1.2"}}, ("NumericNotEquals s3:TlsVersion",)),
        ({"NumericLessThan": {"aws:userid": "1"}}, ("NumericLessThan aws:userid",)),
        ({"ForAllValues:StringNotLike": {"aws:PrincipalArn": [f"{ROLE}*"]}}, None),
        ({"ForAnyValue:StringLike": {"aws:PrincipalArn": [f"{ROLE}*"]}}, ()),
        ({"StringNotLike": {"aws:PrincipalArn": "*/${aws:PrincipalTag/a}"}}, ("StringNotLike aws:PrincipalArn",)),
        ({"BoolIfExists": {"aws:SecureTransport": ["false", "true"]}}, ()),
        ({"BoolIfExists": {"aws:ViaAWSService": "false"}}, ()),
        ({"StringNotEquals": {"aws:PrincipalOrgID": "o-1"}}, ("StringNotEquals aws:PrincipalOrgID",)),
        ({"StringNotEquals": {"aws:SourceVpce": ["vpce-1", "vpce-9"]}}, None),
        ({"StringNotEquals": {"aws:SourceVpce": "vpce-9"}}, ("StringNotEquals aws:SourceVpce",)),
        ({"NotIpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, ("NotIpAddress aws:SourceIp",)),
        (
            {"NotIpAddress": {"aws:SourceIp": "10.0.0.0/8"}, "Bool": {"aws:ViaAWSService": "true"}},
            None,
        ),
    ],
)
def test_a_condition_is_decided_where_the_request_is_known(
    condition: dict[str, Any], undecided: tuple[str, ...] | None
) -> None:
    """None: the statement says nothing against it."""
    assert [one.undecided for one in found(Condition=condition)] == ([] if undecided is None else [undecided])


def test_a_role_that_is_spared_without_its_account_is_perhaps_denied() -> None:
    """AWS asks for both, and then for the session."""
    (one,) = found(Principal=None, NotPrincipal={"AWS": [ROLE]})
    assert one.undecided == ("NotPrincipal without arn:aws:iam::123456789012:root",)


def test_a_variable_in_a_resource_stands_for_anything() -> None:
    (one,) = found(Resource=f"{BUCKET}/${{aws:PrincipalTag/team}}/*")
    assert one.undecided == (f"Resource {BUCKET}/${{aws:PrincipalTag/team}}/*",)
    assert not found(Resource=f"{BUCKET}/out/${{aws:PrincipalTag/team}}/*")


def test_the_session_of_a_role_has_no_path() -> None:
    session = "arn:aws:sts::123456789012:assumed-role/ingest/GlueJobRunnerSession"
    policy = json.dumps({"Statement": [{**DENY, "Principal": {"AWS": session}}]})
    of_path = Requests("arn:aws:iam::123456789012:role/data/ingest", "AROA1", "123456789012")
    assert list(denials(policy, of_path, [READ]))
