"""uv, the package installer, without an installer: its wheel is a zip file with one program in it.

In: `uv.lock`, which pins the version and the hash of every wheel; pip's configuration (`PIP_INDEX_URL`, `PIP_CERT`, pip.conf).
Out: the program. Needs neither pip nor venv, which Debian and Ubuntu pack apart from Python. Where pip is there, pip
downloads, since it knows every way to be configured; otherwise this asks the package index. An error is `NotFetched`;
a package is installed only if its hash is in the lock file.
"""

from __future__ import annotations

import configparser
import hashlib
import importlib.util
import os
import platform
import re
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path

PYPI = "https://pypi.org/simple"
TIMEOUT_S = 60


class NotFetched(Exception):
    """uv is not there, and why."""


def fetch_uv(lock: Path, into: Path) -> Path:
    """The program `into/uv`. Called again, it is fetched again."""
    with tempfile.TemporaryDirectory() as scratch:
        wheel = by_pip(lock, Path(scratch)) if importlib.util.find_spec("pip") else by_index(lock, Path(scratch))
        return unpack(wheel, into)


def by_pip(lock: Path, into: Path) -> Path:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--require-hashes", "-r", str(lock), "-d", str(into)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wheels = sorted(into.glob("uv-*.whl"))
    if ran.returncode or not wheels:
        raise NotFetched("pip could not download uv:\n" + "\n".join(ran.stdout.strip().splitlines()[-10:]))
    return wheels[0]


def by_index(lock: Path, into: Path) -> Path:
    """As pip does it: the index has a page of links for each package (PEP 503)."""
    version, hashes = locked(lock.read_text())
    page = configured("index-url", PYPI).rstrip("/") + "/uv/"
    links = {Path(urllib.parse.urlsplit(link).path).name: link for link in links_in(get(page).decode())}
    fitting = [name for name in links if name.startswith(f"uv-{version}-") and fits(name)]
    if not fitting:
        raise NotFetched(f"{page} has no wheel of uv {version} for {sys.platform} on {platform.machine()}")
    content = get(urllib.parse.urljoin(page, links[fitting[0]]))
    if hashlib.sha256(content).hexdigest() not in hashes:
        raise NotFetched(f"{fitting[0]} is not the file that {lock.name} names; nothing was installed from it")
    wheel = into / fitting[0]
    wheel.write_bytes(content)
    return wheel


def unpack(wheel: Path, into: Path) -> Path:
    """Moved to its place when it is whole: an interrupted set-up leaves no half of it."""
    into.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        (inside,) = [name for name in archive.namelist() if re.fullmatch(r"uv-[^/]+\.data/scripts/uv", name)]
        new = into / ".uv.new"
        new.write_bytes(archive.read(inside))
    new.chmod(0o755)
    return new.replace(into / "uv")


def locked(text: str) -> tuple[str, set[str]]:
    """The version, and the hash of every wheel of it."""
    (version,) = re.findall(r"^uv==(\S+)", text, re.M)
    return version, set(re.findall(r"--hash=sha256:([0-9a-f]{64})", text))


def links_in(page: str) -> list[str]:
    return [link.replace("&amp;", "&").partition("#")[0] for link in re.findall(r'href\s*=\s*"([^"]+)"', page)]


def fits(wheel: str, system: str = sys.platform, machine: str = "", libc: str = "") -> bool:
    """Whether a wheel is for this machine, by the last part of its name."""
    machine = machine or platform.machine()
    tag = wheel.removesuffix(".whl").rpartition("-")[2]
    if not wheel.endswith(".whl"):
        return False
    if system == "darwin":
        return tag.startswith("macosx") and tag.endswith(("_" + machine, "_universal2"))
    kind = "manylinux" if (libc or platform.libc_ver()[0]) == "glibc" else "musllinux"
    return system == "linux" and kind in tag and tag.endswith("_" + machine)


def configured(option: str, otherwise: str) -> str:
    """As pip is configured: the environment first, then its files, those of the user before those of the machine."""
    named = os.environ.get("PIP_" + option.upper().replace("-", "_"))
    if named:
        return named
    home, mine = Path.home(), os.environ.get("PIP_CONFIG_FILE")
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [Path(mine)] if mine else []
    files += [
        config / "pip" / "pip.conf",
        home / ".pip" / "pip.conf",
        Path("/etc/pip.conf"),
        Path("/etc/xdg/pip/pip.conf"),
    ]
    for file in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(file)
        except configparser.Error as broken:
            raise NotFetched(f"{file} cannot be read: {broken}") from broken
        for section in ("download", "install", "global"):
            if parser.has_option(section, option):
                return parser.get(section, option)
    return otherwise


def get(url: str) -> bytes:
    certificates = configured("cert", "")
    context = ssl.create_default_context(cafile=certificates or None)
    parts = urllib.parse.urlsplit(url)
    asked = urllib.request.Request(url, headers={"Accept": "text/html, application/octet-stream"})
    if parts.username:
        # urllib takes no credentials from a URL.
        import base64

        bare = parts._replace(netloc=parts.netloc.rpartition("@")[2])
        credentials = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        asked = urllib.request.Request(bare.geturl(), headers=dict(asked.header_items()))
        asked.add_header("Authorization", "Basic " + base64.b64encode(credentials.encode()).decode())
    shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    try:
        with urllib.request.urlopen(asked, timeout=TIMEOUT_S, context=context) as answer:
            return bytes(answer.read())
    except (OSError, urllib.error.URLError) as why:
        raise NotFetched(f"{shown} could not be fetched: {why}; is the package index reachable?") from why
