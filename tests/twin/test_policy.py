"""Policies are judged as IAM does: one must allow, none may deny, and conditions count."""

from __future__ import annotations

from typing import Any

import pytest

from forebay_local.twin.policy import Call, Verdict, judge

READ = {"Sid": "Read", "Effect": "Allow", "Action": ["s3:GetObject"], "Resource": "arn:aws:s3:::lake/*"}
COMMITS = {
    "Sid": "CommitsAreConditional",
    "Effect": "Deny",
    "Principal": {"AWS": "*"},
    "Action": "s3:PutObject",
    "Resource": "arn:aws:s3:::lake/*/_delta_log/????.json",
    "Condition": {"Null": {"s3:if-none-match": "true"}, "Bool": {"s3:ObjectCreationOperation": "true"}},
}
WRITE = {"Sid": "Write", "Effect": "Allow", "Action": "s3:Put*", "Resource": ["arn:aws:s3:::lake/*"]}
PUBLISH = {
    "Effect": "Allow",
    "Action": "cloudwatch:PutMetricData",
    "Resource": "*",
    "Condition": {"StringEquals": {"cloudwatch:namespace": ["ours", "Glue"]}},
}


def said(statements: list[Any], action: str, resource: str, **context: str) -> Verdict:
    named = {key.replace("__", ":").replace("_", "-"): value for key, value in context.items()}
    return judge([{"Statement": statements}], Call(action, resource, named))


@pytest.mark.parametrize(
    ("statements", "action", "resource", "context", "verdict"),
    [
        ([], "s3:GetObject", "arn:aws:s3:::lake/a", {}, Verdict(False)),
        ([READ], "s3:GetObject", "arn:aws:s3:::lake/a/b", {}, Verdict(True, "Read")),
        ([READ], "S3:getobject", "arn:aws:s3:::lake/a", {}, Verdict(True, "Read")),
        ([READ], "s3:GetObjectVersion", "arn:aws:s3:::lake/a", {}, Verdict(False)),
        ([READ], "s3:GetObject", "arn:aws:s3:::lakes/a", {}, Verdict(False)),
        ([READ], "s3:GetObject", "arn:aws:s3:::lake", {}, Verdict(False)),
        ([PUBLISH], "cloudwatch:PutMetricData", "*", {"cloudwatch__namespace": "ours"}, Verdict(True)),
        ([PUBLISH], "cloudwatch:PutMetricData", "*", {"cloudwatch__namespace": "theirs"}, Verdict(False)),
        ([PUBLISH], "cloudwatch:PutMetricData", "*", {}, Verdict(False)),
    ],
)
def test_a_call_is_allowed_by_a_statement_that_speaks_of_all_of_it(
    statements: list[Any], action: str, resource: str, context: dict[str, str], verdict: Verdict
) -> None:
    assert said(statements, action, resource, **context) == verdict


@pytest.mark.parametrize(
    ("key", "context", "verdict"),
    [
        ("t/_delta_log/0001.json", {"s3__ObjectCreationOperation": "true"}, Verdict(False, "CommitsAreConditional")),
        (
            "t/_delta_log/0001.json",
            {"s3__ObjectCreationOperation": "true", "s3__if_none_match": "*"},
            Verdict(True, "Write"),
        ),
        ("t/_delta_log/0001.json", {"s3__ObjectCreationOperation": "false"}, Verdict(True, "Write")),
        ("t/_delta_log/0001.crc", {"s3__ObjectCreationOperation": "true"}, Verdict(True, "Write")),
    ],
)
def test_what_is_denied_is_not_allowed_by_another_one(key: str, context: dict[str, str], verdict: Verdict) -> None:
    assert said([COMMITS, WRITE], "s3:PutObject", f"arn:aws:s3:::lake/{key}", **context) == verdict


def test_a_condition_that_is_not_understood_is_no_silent_yes_or_no() -> None:
    statement = {**READ, "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}}
    with pytest.raises(ValueError, match="IpAddress, which the local twin cannot judge"):
        said([statement], "s3:GetObject", "arn:aws:s3:::lake/a")
