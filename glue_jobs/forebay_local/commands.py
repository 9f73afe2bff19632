"""Commands about the local twin: S3, SNS and SQS on this machine, wired as on AWS."""

from __future__ import annotations

import os
import random
import shlex
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from forebay.cli.answer import answers, tell
from forebay.cli.options import AsJson
from forebay.cli.show import console, error_console, print_json, size
from forebay.counted import counted
from forebay.errors import Halt, InvalidConfiguration

app = typer.Typer(
    help="Run the whole service on this machine. It needs no AWS account and no Docker.", no_args_is_help=True
)

State = Annotated[
    Path, typer.Option(envvar="FOREBAY_LOCAL", help="The folder that holds the twin's state; safe to delete.")
]
HOME = Path(".forebay/local")


@app.command()
@answers
def up(
    state: State = HOME,
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 0,
    assembly: Annotated[
        Path | None,
        typer.Option(help="A synthesized assembly (cdk.out) to deploy; by default this repository's, env=local."),
    ] = None,
) -> None:
    """Start the twin and deploy the service into it, or show the running twin."""
    from forebay_local.twin import twin as twins

    with console.status("deploying the template into the twin ..."):
        twin = twins.up(state, port=port, cloud=assembly)
    tell(
        endpoint=twin.endpoint,
        process=twin.pid,
        stack=twin.stack,
        queue=twin.queue_url,
        lake=f"s3://{twin.lake_bucket}",
    )
    console.print(f"the twin is up at {twin.endpoint} (process {twin.pid})")
    console.print(
        f"stack    {twin.stack}\nlanding  s3://{twin.landing_bucket}/{twin.prefix}\nqueue    {twin.queue_url}\nlake     s3://{twin.lake_bucket}"
    )
    if (named := os.environ.get("FOREBAY_LOCAL")) and state.absolute() == Path(named).absolute() != HOME.absolute():
        console.print(f"folder   {state} (FOREBAY_LOCAL; `unset FOREBAY_LOCAL` for a twin of this folder)")
    at = f" --state {shlex.quote(str(state))}" if state != HOME and "FOREBAY_LOCAL" not in os.environ else ""
    console.print(f'\nnext     eval "$(forebay local env{at})"')
    console.print("then     forebay local put FILE, then forebay ingest --service FOLDER --drain")
    console.print(
        "or       forebay local feed, then forebay ingest --drain    # generated files, the built-in declarations"
    )


@app.command()
def env(state: State = HOME, as_json: AsJson = False) -> None:
    """Print the variables to set so that forebay, boto3, Spark and the AWS command all talk to the twin."""
    twin = _running(state)
    settings = {**twin.env, "FOREBAY_QUEUE_URL": twin.queue_url, "FOREBAY_LAKE": f"s3://{twin.lake_bucket}"}
    if twin.endpoint.startswith("http:"):
        settings["AWS_ALLOW_HTTP"] = "true"  # delta-rs and polars refuse it otherwise
    settings["FOREBAY_LANDING"] = f"s3://{twin.landing_bucket}/{twin.prefix}"
    settings["FOREBAY_LOCAL"] = str(state.absolute())
    if as_json:
        print_json([settings])
        return
    for name, value in settings.items():
        print(f"export {name}={shlex.quote(value)}")


@app.command()
def status(state: State = HOME, as_json: AsJson = False) -> None:
    """Show the contents of the twin."""
    from forebay_local.twin import twin as twins

    seen = twins.status(state)
    _tell_if_elsewhere(state)
    if as_json:
        print_json([asdict(seen)])
        raise typer.Exit(0 if seen.running else 1)
    if not seen.running or seen.twin is None:
        console.print("no twin is running here; `forebay local up` starts one")
        raise typer.Exit(1)
    console.print(
        f"the twin is up at {seen.twin.endpoint} (process {seen.twin.pid}, {size(seen.memory_bytes)} of memory)"
    )
    console.print(f"landed   {counted(seen.objects, 'object')}, {size(seen.landed_bytes)}")
    console.print(
        f"queue    {seen.visible:,} waiting, {seen.in_flight:,} in flight, {seen.dead_letters:,} dead letters"
    )


@app.command()
@answers
def down(state: State = HOME) -> None:
    """Stop the twin and delete its contents."""
    from forebay_local.twin import twin as twins

    _tell_if_elsewhere(state)
    stopped = twins.down(state)
    tell(process=stopped.pid, was_running=stopped.was_running)
    console.print(f"the twin is down (process {stopped.pid})" if stopped.was_running else "no twin was running here")


@app.command()
@answers
def put(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Files of your own, or folders of them.")],
    state: State = HOME,
    below: Annotated[
        str, typer.Option("--below", help="The folder for them in the landing prefix, such as 2026/11/24/10.")
    ] = "",
) -> None:
    """Put your own files into the landing bucket of the twin.

    A file gets the key that it has in the named folder, below in/ and --below. An in/ at the beginning is not repeated.
    """
    twin = _running(state)
    s3, landed, folder = twin.client("s3"), list[str](), f"{below.rstrip('/')}/" if below else ""
    for file, name in [found for place in files for found in _files_at(place)]:
        key = f"{twin.prefix}{folder}{name.removeprefix(twin.prefix)}"
        s3.upload_file(str(file), twin.landing_bucket, key)
        landed.append(f"s3://{twin.landing_bucket}/{key}")
        console.print(landed[-1])
    tell(landed=landed)
    them = "it" if len(landed) == 1 else "them"
    console.print(f"{counted(len(landed), 'file')} landed; `forebay ingest --service FOLDER --drain` loads {them}")


def _files_at(place: Path) -> list[tuple[Path, str]]:
    """The files of one argument, each with its path inside it."""
    if not place.exists():
        raise InvalidConfiguration.one(str(place), "does not exist", "name files, or folders of them")
    if place.is_file():
        return [(place, place.name)]
    found = [(file, file.relative_to(place).as_posix()) for file in sorted(place.rglob("*")) if file.is_file()]
    if not found:
        raise InvalidConfiguration.one(str(place), "holds no file", "name files, or folders of them")
    return found


@app.command()
def feed(
    state: State = HOME,
    files: Annotated[int, typer.Option(min=1, help="The number of different files to put.")] = 200,
    games: Annotated[int, typer.Option(min=1, max=10_000, help="The number of games.")] = 8,
    rate: Annotated[float, typer.Option(min=0, help="Files a second; 0: no limit.")] = 0,
    records: Annotated[int, typer.Option(min=1, help="Records in a file, on average.")] = 250,
    seed: Annotated[int, typer.Option(help="The same seed puts the same files.")] = 1,
    chaos: Annotated[
        bool, typer.Option("--chaos", help="Also announce files twice, late or in other wrappings, and send junk.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Put generated game telemetry into the landing bucket, some of it dirty, late or duplicated, and count it."""
    from forebay_local.feed import SPAN, Recipe, drop, plan, send_messages

    twin = _running(state)
    recipe = Recipe(
        start=datetime.now(UTC) - SPAN, files=files, games=games, mean_records=records, seed=seed, prefix=twin.prefix
    )
    with console.status("putting files ..."):
        dropped = drop(twin.client("s3"), twin.landing_bucket, plan(recipe), rate=rate or None)
    tally, sent = dropped.tally, 0
    if chaos:
        from forebay_local.fabricate import Chaos

        messages = Chaos.of_every_kind(random.Random(seed).randrange(1 << 30)).announce(dropped.versions).messages
        sent = send_messages(twin.client("sqs"), twin.queue_url, messages)
    if as_json:
        files_put = {"files": dropped.files, "different": dropped.different, "bytes": dropped.put_bytes}
        print_json([{**files_put, "records": tally.records, **asdict(tally), "chaos_messages": sent}])
        return
    console.print(f"files    {dropped.files:,} put, {dropped.different:,} different, {size(dropped.put_bytes)}")
    console.print(
        f"records  {tally.records:,} = {sum(tally.clean.values()):,} clean + {sum(tally.mistyped.values()):,} with a wrong type"
        f" + {tally.unreadable:,} unreadable + {tally.gameless:,} without a game + {tally.unknown:,} of unknown games"
    )
    console.print(f"late     {tally.late:,} of the clean records happened an hour or more earlier")
    if chaos:
        console.print(f"chaos    {sent:,} more messages: repeated, late, wrapped, for deleted objects, and junk")


@app.command()
@answers
def fire(
    name: Annotated[
        str, typer.Argument(help="A schedule, such as start-ingest; without it, the schedules are listed.")
    ] = "",
    state: State = HOME,
) -> None:
    """Trigger a schedule now: run its function, or start its job."""
    from forebay_local.twin import fire as firing

    twin = _running(state)
    if not name:
        schedules = sorted(firing.schedules(twin.client))
        tell(schedules=schedules)
        for known in schedules:
            console.print(known)
        return
    with console.status(f"{name} ..."):
        answer = firing.fire(twin.client, name)
    tell(schedule=name, answer=answer)
    console.print(f"{name}: {answer if answer is not None else 'done'}")


@app.command()
def alarms(
    state: State = HOME,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would change, and what that would do.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate the alarms on the queues, and act on each change.

    CloudWatch does this every minute. A change may run a function, and that function may start the ingest job; each started
    run is named. Stop a run with `forebay stop`.
    """
    from forebay_local.twin.alarms import evaluate, evaluations

    client = _running(state).client
    seen, before = evaluations(client), {run["Id"] for run in _runs(client)}
    for alarm in seen if not as_json else ():
        changes = (
            f"  (was {alarm.before}: {', and '.join(alarm.does) or 'does nothing'})"
            if alarm.now != alarm.before
            else ""
        )
        console.print(f"{alarm.now:<6} {alarm.name}  {alarm.reason}{changes}", highlight=False)
    if not dry_run:
        evaluate(client)
    started = [run for run in _runs(client) if run["Id"] not in before]
    if as_json:
        print_json([{"kind": "alarm", **asdict(alarm)} for alarm in seen])
        print_json([{"kind": "run", **run} for run in started])
    else:
        for run in started:
            declared = {**run["Defaults"], **run.get("Arguments", {})}.get("--service")
            by = f"the declarations in {declared}" if declared else "the built-in declarations"
            console.print(f"started  {run['JobName']} with {by}: `forebay local runs` follows it")


@app.command()
def runs(state: State = HOME, as_json: AsJson = False) -> None:
    """List every run of every job, the newest first, and where the log of each is."""
    twin = _running(state)
    found = sorted(_runs(twin.client), key=lambda run: run["StartedOn"], reverse=True)
    if as_json:
        print_json({**run, "log": str(twin.state / "runs" / run["Id"] / "log")} for run in found)
        return
    if not found:
        console.print("no run yet; `forebay local fire start-ingest` can start one")
    for run in found:
        console.print(f"{run['JobRunState']:<10} {run['ExecutionTime']:>5} s  {run['JobName']}  {run['Id'][:16]}")
        if "ErrorMessage" in run:
            console.print(f"           {run['ErrorMessage']}")
        console.print(f"           {twin.state / 'runs' / run['Id'] / 'log'}")


def _runs(client: Any) -> list[dict[str, Any]]:
    """List every run of every job, with the arguments that the job gives by itself."""
    glue = client("glue")
    return [
        {**run, "Defaults": job.get("DefaultArguments", {})}
        for job in glue.get_jobs()["Jobs"]
        for run in glue.get_job_runs(JobName=job["Name"])["JobRuns"]
    ]


def _running(state: Path):  # type: ignore[no-untyped-def]
    from forebay_local.twin import twin as twins

    _tell_if_elsewhere(state)
    twin = twins.find(state)
    if twin is None:
        raise Halt("no twin is running here; `forebay local up` starts one")
    return twin


def _tell_if_elsewhere(state: Path) -> None:
    """Warns if FOREBAY_LOCAL still names the twin of a folder in which the caller was before."""
    if os.environ.get("FOREBAY_LOCAL") == str(state) and not state.absolute().is_relative_to(Path.cwd()):
        error_console.print(f"FOREBAY_LOCAL names the twin in {state}; `unset FOREBAY_LOCAL` for that of this folder")
