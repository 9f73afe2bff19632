"""A CPython of EMR's version that was built on another machine, and is at no place that it was built for.

In: Maven Central, asked by the Ivy that ships inside PySpark. Out: a folder with `bin` and `lib`, made once. It needs a later
glibc than EMR's images have, so it stands for the one that `uv python install` fetches, which no package index has.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

from forebay.errors import InvalidConfiguration
from forebay.spark import runtime
from tests.cluster.glue_python import ROOT

VERSION = "3.13.5-1.5.12"
CLASSIFIER = "linux-x86_64"
SHA256 = "50ad91aa0baa57f0235bb666b87d8bf2a44e215d28c250de1030502906af143b"
WITHIN = f"org/bytedeco/cpython/{CLASSIFIER}/"


def relocatable_python(folder: Path = ROOT / ".forebay" / "relocatable-python") -> Path:
    program = folder / "bin" / f"python{runtime.PYTHON}"
    if program.exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    scratch = folder.with_suffix(".new")
    scratch.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(_fetched(scratch)) as archive:
        archive.extractall(scratch, [name for name in archive.namelist() if name.startswith(WITHIN)])
    unpacked = scratch / WITHIN
    for library in unpacked.glob("lib*.so*"):
        library.rename(unpacked / "lib" / library.name)
    (unpacked / "bin" / program.name).chmod(0o755)
    unpacked.rename(folder)
    shutil.rmtree(scratch)
    return folder


def glibc_of_this_machine() -> int:
    return int(str(os.confstr("CS_GNU_LIBC_VERSION")).rpartition(".")[2])


def _fetched(into: Path) -> Path:
    module, jar = into / "ivy.xml", into / f"cpython-{VERSION}.jar"
    module.write_text(
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven"><info organisation="forebay" module="python"/>'
        f'<dependencies><dependency org="org.bytedeco" name="cpython" rev="{VERSION}" transitive="false">'
        f'<artifact name="cpython" type="jar" ext="jar" m:classifier="{CLASSIFIER}"/></dependency></dependencies>'
        "</ivy-module>"
    )
    (ivy,) = ROOT.glob(".venv/lib/python3*/site-packages/pyspark/jars/ivy-*.jar")
    java = f"{os.environ['JAVA_HOME']}/bin/java" if "JAVA_HOME" in os.environ else "java"
    command = [java, "-cp", str(ivy), "org.apache.ivy.Main", "-cache", str(into / "ivy"), "-ivy", str(module)]
    command += ["-types", "jar", "-retrieve", f"{into}/[artifact]-[revision].[ext]"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if not jar.exists() or hashlib.sha256(jar.read_bytes()).hexdigest() != SHA256:
        hint = f"the cluster test needs Maven Central: {ran.stdout.strip()[-500:]}"
        raise InvalidConfiguration.one(f"org.bytedeco:cpython:{VERSION}", "is not the file that is expected", hint)
    return jar
