"""A chart of horizontal bars as SVG, readable on light and dark pages. Pure.

In: rows of a label, a value and the text beside it; a limit that is marked with a line. Out: the text of the picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

ROW, TOP, LABELS, BARS, WIDTH = 26, 34, 300, 440, 880
STYLE = """
    .good { fill: #1f883d; } .bad { fill: #cf222e; } .plain { fill: #0969da; } .other { fill: #8c959f; }
    text { fill: #1f2328; } .limit { stroke: #1f2328; stroke-dasharray: 4 3; }
    @media (prefers-color-scheme: dark) {
      .good { fill: #3fb950; } .bad { fill: #f85149; } .plain { fill: #58a6ff; } .other { fill: #6e7681; }
      text { fill: #e6edf3; } .limit { stroke: #e6edf3; }
    }
"""


@dataclass(frozen=True)
class Bar:
    """`kind` is a class of `STYLE`: good, bad, plain or other."""

    label: str
    value: float
    text: str
    kind: str


def chart(title: str, description: str, bars: Sequence[Bar], limit: float | None = None) -> str:
    """A bar that is longer than the picture is cut at its edge; its text has the value. Beside a limit, all texts are at the
    right edge, where the line of the limit crosses none."""
    most = max(limit * 2 if limit else 0.0, *(0.0 if limit else bar.value for bar in bars))
    height = TOP + ROW * len(bars) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t d" '
        'font-family="system-ui, sans-serif" font-size="14">',
        f'  <title id="t">{escape(title)}</title>',
        f'  <desc id="d">{escape(description)}</desc>',
        f"  <style>{STYLE}  </style>",
        f'  <text x="0" y="18" font-weight="600">{escape(title)}</text>',
    ]
    for n, bar in enumerate(bars):
        y, width = TOP + ROW * n, max(1, round(min(bar.value, most) / most * BARS))
        parts += [
            f'  <text x="{LABELS - 8}" y="{y + 15}" text-anchor="end">{escape(bar.label)}</text>',
            f'  <rect class="{bar.kind}" x="{LABELS}" y="{y + 2}" width="{width}" height="{ROW - 8}" rx="3"/>',
            f'  <text x="{LABELS + (BARS if limit else width) + 8}" y="{y + 15}">{escape(bar.text)}</text>',
        ]
    if limit:
        x = LABELS + round(limit / most * BARS)
        parts.append(f'  <line class="limit" x1="{x}" x2="{x}" y1="{TOP - 6}" y2="{height - 6}"/>')
    return "\n".join([*parts, "</svg>", ""])
