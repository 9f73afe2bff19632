"""CloudWatch's evaluation of an alarm, as it is documented, in pure Python.

Enters an alarm's properties as the template has them, and what its metrics get, by the minute. Leaves the minutes in which it
rings. Two things are not documented exactly, so callers try several: how far back CloudWatch looks beyond the evaluation
periods for real points, and where its periods begin.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import mean, pstdev
from types import CodeType
from typing import Any

Samples = Mapping[int, float]
"""What a metric gets, by the minute."""

BREACHES: Mapping[str, Callable[[float, float], bool]] = {
    "GreaterThanThreshold": operator.gt,
    "GreaterThanOrEqualToThreshold": operator.ge,
    "LessThanThreshold": operator.lt,
}
STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "Sum": sum,
    "Maximum": max,
    "Minimum": min,
    "Average": mean,
    "SampleCount": len,
}


@dataclass(frozen=True)
class Rule:
    minutes: int
    periods: int
    to_alarm: int
    missing: str
    breaches: Callable[[float], bool]
    value: Callable[[Mapping[str, Samples], int, int], float | None]
    """Of the period from one minute to another."""


def rule_of_band(alarm: Mapping[str, Any], learned: Samples, until: int) -> Rule:
    """Of an anomaly alarm. CloudWatch learns hours and weekdays by a model that it does not document; this band is the mean of
    the periods up to `until`, and as many deviations as the alarm says."""
    (band,) = [one for one in alarm["Metrics"] if one["Id"] == alarm["ThresholdMetricId"]]
    (stated,) = [one for one in alarm["Metrics"] if one is not band]
    found = re.fullmatch(rf"ANOMALY_DETECTION_BAND\({stated['Id']}, ?([0-9.]+)\)", band["Expression"])
    assert found
    assert alarm["ComparisonOperator"] == "LessThanLowerOrGreaterThanUpperThreshold"
    minutes, statistic = int(stated["MetricStat"]["Period"]) // 60, stated["MetricStat"]["Stat"]
    spans = range(0, until - minutes + 1, minutes)
    usual = [v for at in spans if (v := _aggregated(learned, statistic, at, at + minutes)) is not None]
    middle, width = mean(usual), float(found.group(1)) * pstdev(usual)
    return Rule(
        minutes=minutes,
        periods=int(alarm["EvaluationPeriods"]),
        to_alarm=int(alarm.get("DatapointsToAlarm", alarm["EvaluationPeriods"])),
        missing=alarm["TreatMissingData"],
        breaches=lambda value: not middle - width <= value <= middle + width,
        value=lambda samples, begin, end: _value([stated], stated, samples, begin, end),
    )


def rule_of(alarm: Mapping[str, Any]) -> Rule:
    stated = alarm.get("Metrics") or [
        {
            "Id": "only",
            "MetricStat": {
                "Metric": {"MetricName": alarm["MetricName"]},
                "Stat": alarm["Statistic"],
                "Period": alarm["Period"],
            },
        }
    ]
    compare, threshold = BREACHES[alarm["ComparisonOperator"]], float(alarm["Threshold"])
    (result,) = [one for one in stated if one.get("ReturnData", True)]
    period = next((one["MetricStat"]["Period"] for one in stated if "MetricStat" in one), result.get("Period"))
    return Rule(
        minutes=int(period) // 60,
        periods=int(alarm["EvaluationPeriods"]),
        to_alarm=int(alarm.get("DatapointsToAlarm", alarm["EvaluationPeriods"])),
        missing=alarm.get("TreatMissingData", "missing"),
        breaches=lambda value: compare(value, threshold),
        value=lambda samples, begin, end: _value(stated, result, samples, begin, end),
    )


def evaluate(points: Sequence[float | None], rule: Rule, state: str) -> str:
    """`points` are those that CloudWatch retrieved, oldest first: the evaluation periods, and some before."""
    real = [point for point in points if point is not None]
    if len(real) >= rule.periods:  # then the real ones decide, and what a missing one means does not matter
        breaching = sum(map(rule.breaches, real[-rule.periods :]))
        return "ALARM" if breaching >= rule.to_alarm else "OK"
    breaching, filled = sum(map(rule.breaches, real)), rule.periods - len(real)
    if rule.missing == "breaching":
        return "ALARM" if breaching + filled >= rule.to_alarm else "OK"
    if rule.missing == "notBreaching" or (real[-1:] and not rule.breaches(real[-1])):
        return "ALARM" if breaching >= rule.to_alarm else "OK"
    if rule.missing == "ignore" or not real:
        return state if rule.missing == "ignore" else "INSUFFICIENT_DATA"
    return "ALARM"  # all that is known is bad, and nothing else was reported since


def ringing(
    rule: Rule,
    value: Callable[[int, int], float | None],
    *,
    until: int,
    phase: int,
    further_back: int,
    late: int = 0,
) -> Iterator[int]:
    """The minutes in which the alarm rings, looked at whenever one of its periods ends. `value` is that of the rule for what
    its metrics get. Samples are there `late` minutes after their time."""
    state = "OK"
    for now in range(phase or rule.minutes, until, rule.minutes):
        begins = [now - n * rule.minutes for n in range(rule.periods + further_back, 0, -1)]
        points = [value(begin, max(begin, min(begin + rule.minutes, now - late))) for begin in begins]
        state = evaluate(points, rule, state)
        if state == "ALARM":
            yield now


def _value(
    stated: Sequence[Mapping[str, Any]], result: Mapping[str, Any], samples: Mapping[str, Samples], begin: int, end: int
) -> float | None:
    found: dict[str, float | None] = {}
    for one in stated:
        if "MetricStat" in one:
            name = one["MetricStat"]["Metric"]["MetricName"]
            found[one["Id"]] = _aggregated(samples.get(name, {}), one["MetricStat"]["Stat"], begin, end)
    if "Expression" not in result:
        return found[result["Id"]]
    return _computed(result["Expression"], found, samples, begin, end)


def _aggregated(samples: Samples, statistic: str, begin: int, end: int) -> float | None:
    within = [samples[minute] for minute in range(begin, end) if minute in samples]
    return STATISTICS[statistic](within) if within else None


def _computed(
    expression: str, found: Mapping[str, float | None], samples: Mapping[str, Samples], begin: int, end: int
) -> float | None:
    filled = {name for name in found if f"FILL({name}," in expression}
    if any(value is None for name, value in found.items() if name not in filled):
        return None
    known = {name: 0.0 if value is None else value for name, value in found.items()}
    return float(eval(_compiled(expression), {"__builtins__": {}}, {**WORDS, **known}))


WORDS = {"IF": lambda test, yes, no: yes if test else no, "FILL": lambda value, _: value}


@cache
def _compiled(expression: str) -> CodeType:
    """Both branches of an IF are computed; nothing may be divided by a zero of the other branch."""
    return compile(re.sub(r"/ (\w+)", r"/ (\1 or 1)", expression), expression, "eval")
