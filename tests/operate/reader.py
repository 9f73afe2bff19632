"""A page as a browser reads it: what is open, what is asked for from elsewhere, and what is said."""

from __future__ import annotations

from html.parser import HTMLParser

EVIL = '<script>alert("x")</script>&amp;'
VOID = ("meta", "br")
EMPTY = ("line", "polyline")


class Reader(HTMLParser):
    """Refuses scripts, and tags that are closed in another order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.asks: list[str] = []
        self.texts: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag != "script"
        if tag not in VOID:
            self.open.append(tag)
        self.asks += [value or "" for name, value in attrs if name in ("src", "href", "action")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in EMPTY

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data
