"""The pictures of the monitoring page: the dashboard's layout is that of the template, and both are small."""

from __future__ import annotations

from pathlib import Path

from dev import dashboard_layout, status_picture
from tests.infra.synthesized import synthesized


def test_the_picture_of_the_dashboard_has_the_widgets_of_the_template(tmp_path: Path) -> None:
    template = synthesized(tmp_path, env="prod").template
    drawn = dashboard_layout.drawn(dashboard_layout.body_in(template))
    assert drawn == dashboard_layout.PICTURE.read_text(), "`python -m dev.dashboard_layout` draws it"


def test_the_picture_of_a_status_page_is_small() -> None:
    taken = status_picture.PICTURE.read_bytes()
    assert taken.startswith(b"\x89PNG")
    assert len(taken) <= status_picture.LARGEST
