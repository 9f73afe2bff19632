"""`make docs`: the documents of this repository as a site, in dist/site. It needs no network.

In: the documents. Out: a folder of HTML that a browser opens. The documents keep their relative paths, so that links work;
files that they link to are copied as well. A broken link or anchor fails the build.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / ".forebay" / "site" / "src"


def documents() -> list[Path]:
    top = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")
    others = ("infra/README.md", "lambdas/README.md", "examples/README.md")
    return [*(ROOT / name for name in (*top, *others)), *sorted((ROOT / "docs").rglob("*.md"))]


def linked_from(document: Path) -> Iterator[Path]:
    """Files of this repository that it links to or shows."""
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", document.read_text()):
        found = (document.parent / target).resolve()
        if found.is_file() and found.is_relative_to(ROOT):
            yield found


def stage(place: Path = SOURCE) -> None:
    shutil.rmtree(place, ignore_errors=True)
    for document in documents():
        for file in (document, *linked_from(document)):
            copy = place / file.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)


def main() -> None:
    stage()
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    sys.exit(subprocess.call([sys.executable, "-m", "mkdocs", "build", "--strict"], cwd=ROOT, env=quiet))


if __name__ == "__main__":
    main()
