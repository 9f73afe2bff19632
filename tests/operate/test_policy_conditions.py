"""How doctor reads the conditions of a policy."""

from __future__ import annotations

import json

import pytest

from forebay.operate.doctor.policy import lets_in

SOURCE, ACCOUNT = "arn:aws:sns:eu-west-1:123456789012:drops", "123456789012"


@pytest.mark.parametrize(
    ("condition", "lets"),
    [
        ({}, True),
        ({"ArnLike": {"aws:SourceArn": SOURCE}}, True),
        ({"ArnLikeIfExists": {"aws:SourceArn": SOURCE}}, True),
        ({"ArnLikeIfExists": {"aws:SourceArn": f"{SOURCE}-2"}}, False),
        ({"StringEqualsIfExists": {"aws:SourceVpc": "vpc-1"}}, True),
        ({"StringEquals": {"aws:SourceVpc": "vpc-1"}}, False),
        ({"NumericEqualsIfExists": {"aws:SourceAccount": ACCOUNT}}, False),
    ],
)
def test_a_condition_that_decides_only_where_the_fact_is_sent_is_read_so(
    condition: dict[str, dict[str, str]], lets: bool
) -> None:
    statement = {"Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage"}
    policy = json.dumps({"Statement": [{**statement, "Resource": "*", "Condition": condition}]})
    assert lets_in(policy, "sns.amazonaws.com", "sqs:SendMessage", source=SOURCE, account=ACCOUNT) is lets
