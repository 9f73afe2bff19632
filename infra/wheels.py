"""The packages that jobs import and Glue lacks, as one zip of wheels, so that a job needs no package index.

Enters the packages that set-up unpacked for Glue's Python; leaves `<name>.gluewheels.zip`, the same bytes each time.
https://docs.aws.amazon.com/glue/latest/dg/aws-glue-programming-python-libraries.html
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from forebay.errors import InvalidConfiguration
from infra.bundle import ROOT, zipped

JOB_PACKAGES = ROOT / ".forebay" / "job-packages"
SUFFIX = ".gluewheels.zip"
"""By which Glue knows what it is."""
OF_THE_INSTALLER = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")


def wheels_zip(to: Path, packages: Path = JOB_PACKAGES) -> Path:
    """Glue installs what `requirements.txt` names, from the wheels beside it."""
    wheels = dict(sorted(wheels_of(packages)))
    if not wheels:
        raise InvalidConfiguration.one(
            str(packages), "does not exist yet: jobs ship packages from it", "run `make setup`"
        )
    pinned = sorted("==".join(name.split("-")[:2]) for name in wheels)
    texts = {"requirements.txt": "\n".join([*pinned, ""]).encode()}
    files = {f"wheels/{name}": content for name, content in {**texts, **wheels}.items()}
    to.write_bytes(zipped(files, zipfile.ZIP_STORED))  # wheels are compressed already
    return to


def wheels_of(packages: Path) -> Iterator[tuple[str, bytes]]:
    """Each installed package as the wheel that it came from."""
    for info in packages.glob("*.dist-info"):
        name = f"{info.name.removesuffix('.dist-info')}-{tag((info / 'WHEEL').read_text())}.whl"
        yield name, wheel_of(info, (info / "RECORD").read_text())


@lru_cache(32)
def wheel_of(info: Path, recorded: str) -> bytes:
    """The files of a package, listed with their hashes. `recorded` has the hash of each, so one process packs them once."""
    listed = (line.partition(",")[0] for line in recorded.splitlines())
    files = {
        name: (info.parent / name).read_bytes()
        for name in sorted(listed)
        if not name.startswith(("..", "/"))
        and not (name.startswith(info.name) and name.rpartition("/")[2] in OF_THE_INSTALLER)
    }
    record = f"{info.name}/RECORD"
    lines = [f"{name},sha256={digest(content)},{len(content)}\n" for name, content in files.items()]
    files[record] = "".join([*lines, f"{record},,\n"]).encode()
    return zipped(files)


def tag(wheel: str) -> str:
    """The tag in a wheel's name. A wheel for several platforms names them separated by dots."""
    tags = [line.partition(": ")[2] for line in wheel.splitlines() if line.startswith("Tag: ")]
    python, abi, _ = tags[0].split("-")
    return f"{python}-{abi}-{'.'.join(sorted({one.split('-')[2] for one in tags}))}"


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
