"""How long logs are kept, in the words of the CDK."""

from __future__ import annotations

from aws_cdk import aws_logs as logs

_KEPT = {
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    60: logs.RetentionDays.TWO_MONTHS,
    90: logs.RetentionDays.THREE_MONTHS,
    180: logs.RetentionDays.SIX_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
}


def kept_for(days: int) -> logs.RetentionDays:
    return _KEPT[days]
