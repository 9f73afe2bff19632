"""Draws the layout of the CloudWatch dashboard from the template: its graphs and lists, without numbers.

    python -m dev.dashboard_layout

In: the dashboard that a deployment of the built-in example gets. Out: docs/dashboard.svg, for light and dark pages.
tests/infra/test_dashboard_layout.py fails if the picture is out of date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import Any

from infra.app import build

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "dashboard.svg"
UNIT_WIDTH, UNIT_HEIGHT, GAP, LINE, CHARACTER = 40, 14, 4, 16, 6.6
HIGHEST = 6
"""Of a widget, in units of the dashboard: the runbook at its end is cut there."""
STYLE = """
    rect { fill: #f6f8fa; stroke: #d0d7de; } text { fill: #57606a; } .title { fill: #1f2328; font-weight: 600; }
    @media (prefers-color-scheme: dark) {
      rect { fill: #161b22; stroke: #30363d; } text { fill: #8d96a0; } .title { fill: #e6edf3; }
    }
"""
DESCRIPTION = "The widgets of the CloudWatch dashboard in their places, with the names of their numbers"


def main() -> None:
    with TemporaryDirectory() as folder:
        app, stack = build({"env": "prod"}, outdir=folder)
        app.synth()
        template = json.loads(Path(folder, f"{stack.artifact_id}.template.json").read_text())
    PICTURE.write_text(drawn(body_in(template)))


def body_in(template: Mapping[str, Any]) -> dict[str, Any]:
    (page,) = (one for one in template["Resources"].values() if one["Type"] == "AWS::CloudWatch::Dashboard")
    parts = page["Properties"]["DashboardBody"]["Fn::Join"][1]
    body: dict[str, Any] = json.loads("".join(part if isinstance(part, str) else "X" for part in parts))
    return body


def drawn(body: Mapping[str, Any]) -> str:
    widgets: Sequence[Mapping[str, Any]] = body["widgets"]
    height = max(widget["y"] + min(widget["height"], HIGHEST) for widget in widgets) * UNIT_HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {24 * UNIT_WIDTH} {height}" role="img" '
        'aria-labelledby="t d" font-family="system-ui, sans-serif" font-size="12">',
        '  <title id="t">The dashboard</title>',
        f'  <desc id="d">{DESCRIPTION}</desc>',
        f"  <style>{STYLE}  </style>",
        *(line for widget in widgets for line in _widget(widget)),
    ]
    return "\n".join([*parts, "</svg>", ""])


def _widget(widget: Mapping[str, Any]) -> Iterator[str]:
    x, y = widget["x"] * UNIT_WIDTH, widget["y"] * UNIT_HEIGHT
    width, height = widget["width"] * UNIT_WIDTH - GAP, min(widget["height"], HIGHEST) * UNIT_HEIGHT - GAP
    yield f'  <rect x="{x + 0.5}" y="{y + 0.5}" width="{width}" height="{height}" rx="4"/>'
    title, content = _content(widget)
    line_length = int((width - 20) / CHARACTER)
    titles = wrap(title, line_length)
    for number, line in enumerate([*titles, *wrap(content, line_length)], 1):
        kind = ' class="title"' if number <= len(titles) else ""
        yield f'  <text{kind} x="{x + 10}" y="{y + 2 + number * LINE}">{escape(line)}</text>'


def _content(widget: Mapping[str, Any]) -> tuple[str, str]:
    """The title of a widget, and what it shows."""
    has = widget["properties"]
    match widget["type"]:
        case "alarm":
            return has["title"], f"the state of {len(has['alarms'])} alarms"
        case "metric":
            return has["title"], "graph: " + ", ".join(_names(has.get("metrics", [])))
        case "log":
            return has["title"], "from the log, when you open the dashboard"
        case _:
            return "Runbook", "what to do about each alarm"


def _names(metrics: Sequence[Sequence[Any]]) -> Iterator[str]:
    for metric in metrics:
        options = metric[-1] if isinstance(metric[-1], dict) else {}
        searched = re.findall(r'MetricName="(\w+)"', options.get("expression", ""))
        if options.get("visible", True):
            yield options.get("label") or (f"{searched[0]} of each table" if searched else metric[1])


if __name__ == "__main__":
    main()
