"""The real `cdk` command bootstraps, deploys, compares, updates and removes the service, in the twin as it would on AWS.

One story of one account, told in order: each test goes on where the one before it ended.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from forebay.operate.doctor.examination import examine
from forebay.operate.stack.deployment import look_up
from forebay_local.twin import assembly, synth
from forebay_local.twin.clients import A_PERSON, KEY, access_key, client, know, new_key
from forebay_local.twin.fire import fire
from forebay_local.twin.twin import REGION
from tests.journey.story import event, lines
from tests.twin.waiting import note_that_files_wait

pytestmark = pytest.mark.deep

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def cdk() -> Path:
    said = subprocess.run(
        [sys.executable, str(ROOT / "dev/cdk/install.py")], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    return Path(said.stdout.strip())


@pytest.fixture(scope="module")
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


@pytest.fixture(scope="module")
def account(cdk: Path, endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Cdk:
    return Cdk(cdk, endpoint, tmp_path_factory.mktemp("account"))


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


@dataclass(frozen=True)
class Cdk:
    """The command, in an account."""

    path: Path
    endpoint: str
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
        return kept | {
            **access_key(A_PERSON, self.endpoint),
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": REGION,
            "HOME": str(self.folder),
            "CDK_DISABLE_CLI_TELEMETRY": "true",
            "CI": "true",
        }

    def run(self, *words: str, app: Path, fails: bool = False) -> str:
        command = [str(self.path), *words, "--app", str(app), "--no-color", "--no-notices", "--no-version-reporting"]
        ran = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert (ran.returncode != 0) is fails, f"{' '.join(words)}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout + ran.stderr

    def forebay(self, *words: str) -> subprocess.Popen[str]:
        """The command line, in the same account."""
        command = [sys.executable, "-m", "forebay.cli.main", *words]
        where = self.environment | {"PYTHONPATH": str(ROOT / "glue_jobs"), "NO_COLOR": "1", "COLUMNS": "200"}
        return subprocess.Popen(command, env=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


BOOTSTRAP = ("bootstrap", f"aws://123456789012/{REGION}")
DEPLOY = ("deploy", "--method", "direct", "--require-approval", "never")


@pytest.mark.jvm
def test_a_first_deploy_that_fails_is_mended_examined_and_carries_a_probe_to_its_row(
    account: Cdk, endpoint: str
) -> None:
    good, outputs = synth.assembly(), account.folder / "outputs.json"
    stack, of = assembly.read(good).stack, partial(client, endpoint=endpoint, region=REGION)
    account.run(*BOOTSTRAP, app=good)
    refused = account.run(*DEPLOY, app=broken(good, account.folder / "broken"), fails=True)
    assert 'Unknown parameter in input: "Treshold"' in refused
    assert len(of("s3").list_buckets()["Buckets"]) == 1, "bootstrap's own"
    told = account.forebay("doctor", "--stack", stack)
    assert "is in ROLLBACK_COMPLETE" in told.communicate()[0]

    account.run(*DEPLOY, "--outputs-file", str(outputs), app=good)
    assert json.loads(outputs.read_text())[stack]["IngestJob"] == f"{stack}-ingest"
    on = look_up(stack, of)
    of("sns").subscribe(TopicArn=on.alarm_topic, Protocol="email", Endpoint="night@example.org")
    (bucket,) = on.landing_buckets
    of("s3").put_object(Bucket=bucket, Key=f"{on.landing_prefix}a.json", Body=lines([event("alpha", 1)]))
    probe = account.forebay("doctor", "--stack", stack, "--probe", "--wait-s", "300")
    while len(of("s3").list_object_versions(Bucket=bucket)["Versions"]) < 2:
        assert probe.poll() is None, probe.communicate()
        time.sleep(0.2)
    note_that_files_wait(of, on.outputs["LakeUri"].removeprefix("s3://"), minutes=9)
    assert fire(of, "start-ingest") == "started"
    said, _ = probe.communicate()
    assert (probe.returncode, f"{stack} in account 123456789012, {REGION}: well; " in said) == (0, True), said
    assert " and the probe" in said
    run = until_it_ended(of("glue"), f"{stack}-ingest")
    assert run["JobRunState"] == "SUCCEEDED", run.get("ErrorMessage")
    counted = account.forebay("audit", "--lake", on.outputs["LakeUri"], "--json")
    assert '"loaded": 1' in counted.communicate()[0]
    assert counted.returncode == 0
    kept = of("s3").list_object_versions(Bucket=bucket)["Versions"]
    assert [one["Key"] for one in kept] == [f"{on.landing_prefix}a.json"], "the probe is removed"


@pytest.mark.jvm
def test_edited_settings_and_declarations_show_in_the_diff_and_are_deployed(account: Cdk, endpoint: str) -> None:
    first = synth.assembly()
    second = edited(account.folder / "second")
    glue, job = client("glue", endpoint, REGION), f"{assembly.read(first).stack}-ingest"

    def workers() -> int:
        return int(glue.get_job(JobName=job)["Job"]["NumberOfWorkers"])

    assert workers() == 2
    differences = account.run("diff", "--method=template", app=second)
    assert re.search(r"NumberOfWorkers\s+.*\[-\] 2\s+.*\[\+\] 7", differences, re.DOTALL), differences
    # A changed table is another declaration that the job is told of; changed hours are the clock's.
    changed = r"--deployed_service:.*?\[-\] \S+[0-9a-f]{60}\.toml\W+\[\+\] \S+[0-9a-f]{60}\.toml"
    assert re.search(changed, differences, re.DOTALL), differences
    hours = r"ScheduleExpression\s+.*\[-\] cron\(0 4 \? \* MON-SAT \*\)\s+.*\[\+\] cron\(15 5 \* \* \? \*\)"
    assert re.search(hours, differences), differences
    account.run(*DEPLOY, app=second)
    assert workers() == 7
    assert "no differences" in account.run("diff", "--method=template", app=second)


def names_of_the_page(key: str) -> dict[str, dict[str, str]]:
    """The file of docs/upgrade.md, with our names in the place of its own."""
    (file,) = re.findall(r"```json\n(.+?)```", (ROOT / "docs" / "upgrade.md").read_text(), re.DOTALL)
    ours = {"forebay-prod": "forebay-local", "ACCOUNT": "123456789012", "REGION": REGION, '"KEY"': f'"{key}"'}
    for theirs, name in ours.items():
        assert theirs in file
        file = file.replace(theirs, name)
    found: dict[str, dict[str, str]] = json.loads(file)
    return found


@pytest.mark.jvm
def test_a_removed_stack_takes_its_buckets_back_as_the_page_says(account: Cdk, endpoint: str) -> None:
    """docs/upgrade.md: import them, delete what is in the way, and deploy. The new stack reads what the first one wrote."""
    app, of = synth.assembly(), partial(client, endpoint=endpoint, region=REGION)
    plan, s3 = assembly.read(app), of("s3")
    before = look_up(plan.stack, of)
    (landing,) = before.landing_buckets
    s3.put_object(Bucket=before.lake_bucket, Key="alpha/part-0.parquet", Body=b"kept")
    account.run("destroy", "--force", app=app)
    assert of("glue").get_jobs()["Jobs"] == []
    stacks = of("cloudformation").describe_stacks()["Stacks"]
    assert [found["StackName"] for found in stacks if not found["StackStatus"].startswith("DELETE")] == ["CDKToolkit"]
    assert landing in [one["Name"] for one in s3.list_buckets()["Buckets"]], "a removed stack keeps its data"
    account.run(*DEPLOY, app=app, fails=True)

    (rule,) = s3.get_bucket_encryption(Bucket=before.lake_bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    key = rule["ApplyServerSideEncryptionByDefault"]["KMSMasterKeyID"].rpartition("/")[2]
    kept, mapping = names_of_the_page(key), account.folder / "kept.json"
    command = ("import", "--resource-mapping", str(mapping))
    (of_landing,) = [
        name for name in json.loads(plan.template)["Resources"] if re.fullmatch("Landing[0-9A-F]{8}", name)
    ]
    mapping.write_text(json.dumps({**kept, of_landing: {"BucketName": landing}}))
    assert "skipping import" in account.run(*command, app=app), "the deployment that failed left a stack"
    account.run("destroy", "--force", app=app)
    assert "Unresolved resource dependencies" in account.run(*command, app=app, fails=True)
    mapping.write_text(json.dumps(kept))
    said = account.run(*command, app=app)
    assert "Some resources were skipped" in said
    (stack,) = of("cloudformation").describe_stacks(StackName=plan.stack)["Stacks"]
    assert stack["StackStatus"] == "IMPORT_COMPLETE"

    for by in kept.values():
        if bucket := by.get("BucketName"):
            s3.delete_bucket_policy(Bucket=bucket)
    for version in s3.list_object_versions(Bucket=landing)["Versions"]:
        s3.delete_object(Bucket=landing, Key=version["Key"], VersionId=version["VersionId"])
    s3.delete_bucket(Bucket=landing)
    account.run(*DEPLOY, app=app)
    assert "no differences" in account.run("diff", "--method=template", app=app)
    after = look_up(plan.stack, of)
    assert (after.lake_bucket, after.outputs["DataKey"]) == (before.lake_bucket, before.outputs["DataKey"])
    job = of("glue").get_job(JobName=f"{plan.stack}-ingest")["Job"]["Role"].rpartition("/")[2]
    as_job = client("s3", endpoint, REGION, job)
    assert as_job.get_object(Bucket=after.lake_bucket, Key="alpha/part-0.parquet")["Body"].read() == b"kept"
    s3.put_object(Bucket=landing, Key=f"{after.landing_prefix}b.json", Body=b"{}")
    counted = of("sqs").get_queue_attributes(QueueUrl=after.queue_url, AttributeNames=["ApproximateNumberOfMessages"])
    assert counted["Attributes"]["ApproximateNumberOfMessages"] == "1"
    of("sns").subscribe(TopicArn=after.alarm_topic, Protocol="email", Endpoint="night@example.org")
    assert list(examine(after)) == []


def until_it_ended(glue: Any, job: str, within_s: float = 300) -> dict[str, Any]:
    until = time.monotonic() + within_s
    while (run := glue.get_job_runs(JobName=job)["JobRuns"][0])["JobRunState"] in ("STARTING", "RUNNING"):
        assert time.monotonic() < until, run
        time.sleep(0.5)
    found: dict[str, Any] = run
    return found
