"""Takes the picture of a status page in the documents: of the lake of `make demo`, after 50 more files with faults.

    make demo
    export FOREBAY_LOCAL=.forebay/demo && eval "$(forebay local env)"
    forebay local feed --files 50 --chaos && forebay ingest --drain --wait-s 1
    forebay compact && python -m dev.status_picture && forebay local down

The compaction measures the tables. In: the lake that the environment names, and Chromium on the PATH. Out: docs/status.png.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "status.png"
LARGEST = 150_000
"""Bytes of a picture in the documents, at most."""
SIZE = "1100,1420"
"""In pixels: all tables of the demo fit."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        sys.exit(f"none of {', '.join(BROWSERS)} is on the PATH; Debian: apt-get install chromium")
    with TemporaryDirectory() as folder:
        page = Path(folder, "status.html")
        subprocess.run(["forebay", "report", "--out", page], check=True)
        # A container's root has no sandbox, and the page is ours.
        options = ["--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={SIZE}"]
        subprocess.run(
            [browser, *options, f"--screenshot={PICTURE}", page.as_uri()], check=True, stderr=subprocess.DEVNULL
        )


if __name__ == "__main__":
    main()
