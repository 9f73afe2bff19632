"""The real `cdk` command bootstraps, deploys, compares, updates and removes the service, in the twin as it would on AWS."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from forebay_local.twin import assembly, synth
from forebay_local.twin.clients import A_PERSON, KEY, access_key, client, know, new_key
from forebay_local.twin.twin import REGION

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def cdk() -> Path:
    said = subprocess.run(
        [sys.executable, str(ROOT / "dev/cdk/install.py")], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    return Path(said.stdout.strip())


@pytest.fixture
def endpoint() -> Iterator[str]:
    """An account with nothing in it."""
    command = [sys.executable, "-m", "forebay_local.twin.server", "--with-parent", str(os.getpid())]
    key = new_key()
    environment = {**os.environ, KEY: key}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT / "glue_jobs", env=environment)
    assert server.stdout is not None
    endpoint = server.stdout.readline().split()[1]
    know(endpoint, key)
    yield endpoint
    server.terminate()
    server.communicate()


DECLARED = """
name = "games"
[[tables]]
name = "{game}"
columns = [{ name = "level", type = "long" }]
[schedules.vacuum]
job = "maintain"
at = "daily 05:15"
zone = "Europe/Berlin"
"""


def edited(folder: Path) -> Path:
    """The same service after an edit of its settings and of its declarations."""
    declarations = folder.with_suffix(".toml")
    declarations.write_text(DECLARED)
    environment = {**os.environ, "CDK_OUTDIR": str(folder)}
    given = ("env=local", "workers=7", f"service={declarations}")
    command = [sys.executable, "-m", "infra.app", *(word for pair in given for word in ("-c", pair))]
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
    return folder


def broken(good: Path, folder: Path) -> Path:
    """The same app with one property that CloudFormation refuses, after the buckets are made."""
    shutil.copytree(good, folder)
    (file,) = folder.glob("*.template.json")
    template = json.loads(file.read_text())
    (alarm,) = [one for name, one in template["Resources"].items() if name.startswith("AlarmsFilesWait")]
    alarm["Properties"]["Treshold"] = 1
    file.write_text(json.dumps(template))
    (assets,) = folder.glob("*.assets.json")
    known = json.loads(assets.read_text())["files"].items()
    (digest,) = [name for name, asset in known if asset["source"]["path"] == file.name]
    for place in (assets, folder / "manifest.json"):
        place.write_text(place.read_text().replace(digest, digest[::-1]))  # another template, at another place
    return folder


def test_a_fetch_that_breaks_off_says_so_and_leaves_what_was_there(tmp_path: Path) -> None:
    """As on a machine without a network; the command that an earlier lock file named can go on being used."""
    found = importlib.util.spec_from_file_location("install", ROOT / "dev/cdk/install.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    nowhere = {
        "npm_config_registry": "http://127.0.0.1:9",
        "npm_config_fetch_retries": "0",
        "npm_config_cache": str(tmp_path / "cache"),
    }
    home = tmp_path / "tools" / "cdk"
    with pytest.raises(SystemExit, match="could not be fetched; is the npm registry reachable"):
        module.install(home, environment={**os.environ, **nowhere})
    assert list(home.parent.iterdir()) == []

    home.mkdir()
    (home / "cdk").write_text("of before")
    (home / "package-lock.json").write_text("{}")
    with pytest.raises(SystemExit, match="could not be fetched"):
        module.install(home, environment={**os.environ, **nowhere})
    assert sorted(file.name for file in home.iterdir()) == ["cdk", "package-lock.json"]
    assert [place.name for place in home.parent.iterdir()] == ["cdk"]


def test_bootstrap_deploy_that_fails_deploy_diff_update_and_destroy(cdk: Path, endpoint: str, tmp_path: Path) -> None:
    first = synth.assembly()
    second = edited(tmp_path / "second")
    stack = assembly.read(first).stack
    glue, job = client("glue", endpoint, REGION), f"{stack}-ingest"

    def run(*words: str, app: Path = first, fails: bool = False) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
        environment |= {
            **access_key(A_PERSON, endpoint),
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_REGION": REGION,
            "HOME": str(tmp_path),
            "CDK_DISABLE_CLI_TELEMETRY": "true",
            "CI": "true",
        }
        command = [str(cdk), *words, "--app", str(app), "--no-color", "--no-notices", "--no-version-reporting"]
        ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert (ran.returncode != 0) is fails, f"{' '.join(words)}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout + ran.stderr

    def workers() -> int:
        return int(glue.get_job(JobName=job)["Job"]["NumberOfWorkers"])

    run("bootstrap", f"aws://123456789012/{REGION}")
    deploy = ("deploy", "--method", "direct", "--require-approval", "never")
    outputs = tmp_path / "outputs.json"
    refused = run(*deploy, app=broken(first, tmp_path / "broken"), fails=True)
    assert 'Unknown parameter in input: "Treshold"' in refused
    assert len(client("s3", endpoint, REGION).list_buckets()["Buckets"]) == 1, "bootstrap's own"
    run(*deploy, "--outputs-file", str(outputs))
    assert json.loads(outputs.read_text())[stack]["IngestJob"] == job
    assert workers() == 2
    differences = run("diff", "--method=template", app=second)
    assert re.search(r"NumberOfWorkers\s+.*\[-\] 2\s+.*\[\+\] 7", differences, re.DOTALL), differences
    # A changed table is another declaration that the job is told of; changed hours are the clock's.
    assert re.search(r"--service\W+\[-\] [0-9a-f]{64}\.toml\s+.*\[\+\] [0-9a-f]{64}\.toml", differences), differences
    hours = r"ScheduleExpression\s+.*\[-\] cron\(0 4 \? \* MON-SAT \*\)\s+.*\[\+\] cron\(15 5 \* \* \? \*\)"
    assert re.search(hours, differences), differences
    run(*deploy, app=second)
    assert workers() == 7
    assert "no differences" in run("diff", "--method=template", app=second)
    run("destroy", "--force")
    assert glue.get_jobs()["Jobs"] == []
    stacks = client("cloudformation", endpoint, REGION).describe_stacks()["Stacks"]
    assert [found["StackName"] for found in stacks if not found["StackStatus"].startswith("DELETE")] == ["CDKToolkit"]
