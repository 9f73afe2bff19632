"""Draws the recorded output of `make demo` as a terminal, for the README. The picture follows the reader's light or dark mode.

    make demo > docs/demo.txt && python -m dev.recording

In: docs/demo.txt, unchanged output of a run. Out: docs/demo.svg. tests/test_recording.py fails if one of them is out of date.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
TEXT, PICTURE = DOCS / "demo.txt", DOCS / "demo.svg"
LINE, CHARACTER, MARGIN = 18, 7.8, 20
STYLE = """
    rect { fill: #f6f8fa; stroke: #d0d7de; }
    text { fill: #1f2328; white-space: pre; }
    .good { fill: #1a7f37; font-weight: bold; }
    .bar { fill: #0969da; }
    .typed { font-weight: bold; }
    @media (prefers-color-scheme: dark) {
      rect { fill: #0d1117; stroke: #30363d; }
      text { fill: #e6edf3; }
      .good { fill: #3fb950; }
      .bar { fill: #58a6ff; }
    }"""


def drawn(output: str) -> str:
    lines = ["$ make demo", *output.rstrip("\n").split("\n")]
    width = round(max(map(len, lines)) * CHARACTER + 2 * MARGIN)
    height = len(lines) * LINE + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="t d" '
        'xml:space="preserve" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13">',
        '  <title id="t">Output of make demo</title>',
        '  <desc id="d">The demo loads generated files, compacts a table, and counts every record twice.</desc>',
        f"  <style>{STYLE}\n  </style>",
        f'  <rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
    ]
    for number, line in enumerate(lines, 1):
        if line.strip():
            parts.append(f'  <text x="{MARGIN}" y="{MARGIN + number * LINE - 5}"{_kind(line)}>{_marked(line)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _kind(line: str) -> str:
    if line.startswith("$ "):
        return ' class="typed"'
    return ' class="good"' if line.startswith("all sums hold") else ""


def _marked(line: str) -> str:
    return re.sub("[━╸╺]+", lambda bar: f'<tspan class="bar">{bar[0]}</tspan>', escape(line, quote=False))


def main() -> None:
    PICTURE.write_text(drawn(TEXT.read_text()))


if __name__ == "__main__":
    main()
