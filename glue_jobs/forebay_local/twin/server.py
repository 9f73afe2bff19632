"""The twin's process: `python -m forebay_local.twin.server --port 0 --state DIR`.

Enters a port of 127.0.0.1 (0 for any that is free) and the folder of its state. Leaves one line on stdout when it
answers, `READY http://127.0.0.1:PORT PID`; anything else on stderr is a problem. All it holds is in memory.

`FOREBAY_TWIN_KEY` in its environment is the key without which nobody is answered.

It ends on SIGTERM. It also ends when its mark in the folder is gone or another server's, so a deleted folder leaves no
orphan. With `--with-parent` it ends when the process that started it ends. If the port is taken, the key is
missing, or the patches do not fit moto, it prints one sentence on stderr, with exit status 1 or 2.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from forebay.errors import InvalidConfiguration
from forebay_local.twin.clients import KEY, know
from forebay_local.twin.door import guarded
from forebay_local.twin.patch import missing

MARK = "server.pid"
LOOK_EVERY_S = 0.5


def main(argv: list[str] | None = None) -> int:
    options = _options(argv)
    problems = missing()
    if problems:
        print(InvalidConfiguration(problems), file=sys.stderr)
        return 2
    key = os.environ.pop(KEY, "")
    if not key:
        print(f"{KEY} is not set: the twin answers no request without a key", file=sys.stderr)
        return 2
    _be_quiet()
    _parse_descriptions_once()
    server = _bind(options.port, key)
    endpoint = f"http://127.0.0.1:{server.server_port}"
    know(endpoint, key)
    try:
        _patch(endpoint, options.state)
    except InvalidConfiguration as moved:
        print(moved, file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, _end)
    if options.state:
        (options.state / MARK).write_text(str(os.getpid()))
    threading.Thread(target=_watch, args=(_reasons_to_live(options),), daemon=True).start()
    print(f"READY {endpoint} {os.getpid()}", flush=True)
    server.serve_forever()
    return 0


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m forebay_local.twin.server", description="The local twin's process."
    )
    parser.add_argument("--port", type=int, default=0, help="a port of 127.0.0.1; 0 takes any that is free")
    parser.add_argument("--state", type=Path, help="the folder whose deletion ends the server")
    parser.add_argument("--with-parent", type=int, metavar="PID", help="the starting process; end when it ends")
    return parser.parse_args(argv)


def _be_quiet() -> None:
    warnings.filterwarnings("ignore")  # of moto and flask; nobody reads them in a child's log
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    # Nothing in here may ever look outside, whatever the shell that started it has set.
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(AWS_ACCESS_KEY_ID="local", AWS_SECRET_ACCESS_KEY="local", AWS_EC2_METADATA_DISABLED="true")
    os.environ["MOTO_DISABLE_GLOBAL_CORS"] = "true"  # for browsers; it costs a regex a header on every request


def _parse_descriptions_once() -> None:
    """Each session of boto3 parses the descriptions of its services, and moto makes dozens of sessions when it is imported."""
    import botocore.session
    from botocore.loaders import create_loader

    botocore.session.create_loader = cache(create_loader)


def _patch(endpoint: str, state: Path | None) -> None:
    from forebay_local.twin import account, events, functions, glue, quick, rights, s3, sns, sqs
    from forebay_local.twin.cloudformation import engine

    quick.install()
    rights.install(state)
    sqs.install()
    sns.install()
    s3.install()
    functions.install(endpoint)
    events.install(endpoint)
    glue.install(endpoint, state)
    account.install()
    engine.install(endpoint)


def _bind(port: int, key: str) -> Any:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    from forebay_local.twin.kept_alive import Handler

    application = DomainDispatcherApplication(create_backend_app)
    # A taken port: werkzeug says so on stderr and exits with 1.
    guard = guarded(application, key, _is_vended)
    return make_server("127.0.0.1", port, guard, threaded=True, request_handler=Handler)


def _is_vended(access_key_id: str) -> bool:
    """By STS, to somebody who assumed a role."""
    from moto.sts.models import sts_backends

    backends = [backend for by_partition in sts_backends.values() for backend in by_partition.values()]
    return any(backend.get_assumed_role_from_access_key(access_key_id) for backend in backends)


def _reasons_to_live(options: argparse.Namespace) -> list[Callable[[], bool]]:
    reasons: list[Callable[[], bool]] = []
    if options.state:
        mark = (options.state / MARK).absolute()
        reasons.append(lambda: _marked(mark))
    if options.with_parent:
        reasons.append(lambda: bool(os.getppid() == options.with_parent))
    return reasons


def _marked(mark: Path) -> bool:
    try:
        return mark.read_text() == str(os.getpid())
    except OSError:
        return False


def _end(*_: object) -> None:
    """At once, with the runs that it started. Python would first take apart all that moto has made, for seconds."""
    from forebay_local.twin.glue import end_all

    end_all()
    sys.stdout.flush()
    os._exit(0)


def _watch(reasons: list[Callable[[], bool]]) -> None:
    pause = threading.Event()
    while all(reason() for reason in reasons):
        pause.wait(LOOK_EVERY_S)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
