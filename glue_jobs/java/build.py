"""Compiles the Java classes (the log store, commits, checkpoints, local files) into `forebay-logstore.jar`, with javac alone.

In: the folder of the JVM libraries to compile against, and the path of the jar. Out: that jar. The same sources, libraries and
compiler give the same bytes (entries sorted, one fixed time). `BuildFailed` says in one line that javac or a library is
missing, or that the source has an error, with javac's message.

Run twice, the second run looks at the hash that the jar carries in its manifest and does nothing.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "src"

# The libraries that the classes import. hadoop-client-api, slf4j-api and Spark's own come inside PySpark.
OF_SPARK = ("spark-sql_2.13-", "spark-catalyst_2.13-", "spark-sql-api_2.13-", "spark-unsafe_2.13-")
OF_SPARK += ("spark-common-utils_2.13-", "scala-library-", "kryo-shaded-")
OF_DELTA = ("delta-storage-", "delta-kernel-api-", "delta-kernel-defaults-")
NEEDED = (*OF_DELTA, "hadoop-aws-", "aws-core-", "sdk-core-", "hadoop-client-api-", "slf4j-api-", *OF_SPARK)

RELEASE = "17"
LONG_AGO = (1980, 1, 1, 0, 0, 0)
HASH_KEY = "Forebay-Source-Hash"


class BuildFailed(Exception):
    """The jar could not be made; the text is for a person."""


def build(jars: Path, out: Path, *, spark_jars: Path | None = None) -> Path:
    """Makes `out` unless it already exists, made from these sources; `jars` may hold `out` itself. Returns `out`.

    `spark_jars` is the `jars` folder of PySpark; without it the one of this interpreter or of the project's `.venv`.
    """
    libraries = find_libraries([jars, *([spark_jars] if spark_jars else pyspark_jars())])
    wanted = source_hash(libraries)
    if hash_inside(out) != wanted:
        with tempfile.TemporaryDirectory(prefix="forebay-logstore-") as scratch:
            compile_sources(libraries, Path(scratch))
            write_jar(Path(scratch), out, wanted)
    return out


def find_libraries(folders: list[Path]) -> list[Path]:
    """One jar for each name in `NEEDED`, the first folder that has it deciding."""
    found = {name: next((jar for d in folders for jar in sorted(d.glob(f"{name}[0-9]*.jar"))), None) for name in NEEDED}
    missing = [name.rstrip("-") for name, jar in found.items() if jar is None]
    if missing:
        looked = ", ".join(map(str, folders))
        raise BuildFailed(f"the log store cannot be compiled without {', '.join(missing)}; looked in {looked}")
    return [jar for jar in found.values() if jar is not None]


def pyspark_jars() -> list[Path]:
    spec = importlib.util.find_spec("pyspark")
    homes = [Path(spec.origin).parent] if spec and spec.origin else []
    homes += sorted(HERE.parent.parent.glob(".venv/lib/python3*/site-packages/pyspark"))
    return [home / "jars" for home in homes]


def source_hash(libraries: list[Path]) -> str:
    """Changes with a source, with this file, and with a library's version, which is in its name."""
    digest = hashlib.sha256()
    for file in [Path(__file__).resolve(), *java_files()]:
        digest.update(f"{file.name}\0".encode())
        digest.update(file.read_bytes())
    for jar in libraries:
        digest.update(f"\0{jar.name}".encode())
    return digest.hexdigest()


def java_files() -> list[Path]:
    return sorted(SOURCES.rglob("*.java"))


def hash_inside(jar: Path) -> str | None:
    try:
        with zipfile.ZipFile(jar) as opened:
            lines = opened.read("META-INF/MANIFEST.MF").decode().replace("\r\n ", "").splitlines()
    except (OSError, KeyError, zipfile.BadZipFile):
        return None
    entries = dict(line.split(": ", 1) for line in lines if ": " in line)
    return entries.get(HASH_KEY)


def compile_sources(libraries: list[Path], into: Path) -> None:
    classpath = os.pathsep.join(map(str, libraries))
    # -classfile: the SDK's classes carry annotations whose own classes we leave out.
    lint = ["-Xlint:all,-classfile,-processing", "-proc:none"]
    options = [*lint, "-encoding", "UTF-8", "--release", RELEASE, "-d", str(into), "-cp", classpath]
    run = subprocess.run([javac(), *options, *map(str, java_files())], capture_output=True, text=True)
    if run.returncode:
        raise BuildFailed(f"javac refused the log store:\n{run.stdout}{run.stderr}".rstrip())


def javac() -> str:
    home = os.environ.get("JAVA_HOME")
    found = (shutil.which("javac", path=str(Path(home) / "bin")) if home else None) or shutil.which("javac")
    if not found:
        raise BuildFailed(f"the log store is compiled with javac, and none is on the PATH; install a JDK {RELEASE}")
    return found


def write_jar(classes: Path, out: Path, wanted: str) -> None:
    """Sorted, at one fixed time, and put in place in one step, so that two builds at once do no harm."""
    # A line of a manifest has at most 72 bytes; a longer one continues after a blank.
    hash_line = f"{HASH_KEY}: {wanted}"
    manifest = f"Manifest-Version: 1.0\r\n{hash_line[:70]}\r\n {hash_line[70:]}\r\n\r\n"
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=out.parent, prefix=f".{out.name}.", delete=False) as half:
        with zipfile.ZipFile(half, "w") as jar:
            add(jar, "META-INF/MANIFEST.MF", manifest.encode())
            for file in sorted(classes.rglob("*.class")):
                add(jar, file.relative_to(classes).as_posix(), file.read_bytes())
        Path(half.name).chmod(0o644)
    Path(half.name).replace(out)


def add(jar: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, LONG_AGO)
    entry.external_attr = 0o644 << 16
    entry.create_system = 3
    # Stored, not deflated: the bytes must not hang on a version of zlib.
    jar.writestr(entry, content, zipfile.ZIP_STORED)


if __name__ == "__main__":
    try:
        print(build(Path(sys.argv[1]), Path(sys.argv[2])))
    except BuildFailed as problem:
        sys.exit(str(problem))
