"""Pictures of a page, as SVG in its text. They use the colours of the page's style, and contain no words, because a phone
would shrink them with the picture."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from forebay.operate.page.content import Chart

WIDTH, HEIGHT = 600, 90
SMALL_WIDTH, SMALL_HEIGHT = 120, 24


def bars(chart: Chart) -> str:
    """One bar for each hour; it says its number when it is touched."""
    highest = max((value for _, value in chart.values), default=0)
    step = WIDTH / max(1, len(chart.values))
    drawn = []
    for n, (at, value) in enumerate(chart.values):
        height = max(1.0, (HEIGHT - 2) * value / highest) if value and highest else 0
        box = f'x="{n * step:.1f}" y="{HEIGHT - 1 - height:.1f}" width="{max(1.0, step - 2):.1f}" height="{height:.1f}"'
        drawn.append(
            f'<rect class="mark" {box}><title>{at:%m-%d %H:00}: {escape(chart.form.format(value))}</title></rect>'
        )
    base = f'<line class="base" x1="0" x2="{WIDTH}" y1="{HEIGHT - 1}" y2="{HEIGHT - 1}"/>'
    about = f'viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{escape(chart.title)} by hour"'
    return f'<svg class="chart" {about}>{"".join(drawn)}{base}</svg>'


def sparkline(values: Sequence[int]) -> str:
    highest, step = max(values, default=0) or 1, SMALL_WIDTH / max(1, len(values) - 1)
    points = " ".join(
        f"{n * step:.1f},{SMALL_HEIGHT - 1 - (SMALL_HEIGHT - 2) * value / highest:.1f}"
        for n, value in enumerate(values)
    )
    about = f'viewBox="0 0 {SMALL_WIDTH} {SMALL_HEIGHT}" role="img" aria-label="rows by hour"'
    return f'<svg class="spark" {about}><polyline class="line" points="{points}"/></svg>'
