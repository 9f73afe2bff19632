"""The CDK app: `python -m infra.app [-c name=value ...]` writes cdk.out and needs nothing but Python; the `cdk` command runs
it the same way. It reports all mistakes of settings and declarations at once, with exit status 2."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from infra import node  # noqa: F401  isort: skip
import aws_cdk as cdk

from forebay.declaration.service import Service
from forebay.errors import InvalidConfiguration
from infra.adopted import problems_of_adopted, said_account
from infra.context import engine_in, place_of_declarations, settings_in
from infra.declarations import declared
from infra.forebay import Forebay, tags_of
from infra.regions import problems_of_region, region_in
from infra.review import review
from infra.settings import Settings

CDK_JSON = Path(__file__).resolve().parent.parent / "cdk.json"


def build(
    context: Mapping[str, Any],
    *,
    outdir: str | None = None,
    region: str = "",
    account: str = "",
    reviewed: bool = True,
) -> tuple[cdk.App, cdk.Stack]:
    """The app, not yet synthesized. A review takes some seconds. The twin, and only the twin, deploys what was not
    `reviewed`."""
    settings, service = decided(context, region, account)
    app = cdk.App(
        context=dict(context),
        outdir=outdir,
        analytics_reporting=False,
        builtin_cloud_formation_validation=reviewed,
    )
    stack = cdk.Stack(
        app,
        settings.name,
        termination_protection=settings.termination_protection,
        tags=tags_of(settings),  # CloudFormation gives them to all that it makes
        description="JSON files that land in S3 become Delta tables",
        # Assets in a folder of their own: the account's bucket belongs to every stack, and our jobs may read ours alone.
        synthesizer=cdk.DefaultStackSynthesizer(
            generate_bootstrap_version_rule=False, bucket_prefix=f"{settings.name}/"
        ),
    )
    Forebay(stack, "Default", settings=settings, service=service, tags={})  # the CDK leaves this id out of logical ids
    if reviewed:
        review(app)
    return app, stack


def decided(context: Mapping[str, Any], region: str = "", account: str = "") -> tuple[Settings, Service]:
    """Raises `InvalidConfiguration` with all that is wrong, of the settings, the region and the declarations together."""
    problems = list(problems_of_region(region, engine_in(context)))
    try:
        settings = settings_in(context)
        problems += problems_of_adopted(settings, region, account)
    except InvalidConfiguration as refused:
        problems += refused.problems
    try:
        service = declared(place_of_declarations(context))
    except InvalidConfiguration as refused:
        problems += refused.problems
    if problems:
        raise InvalidConfiguration(problems)
    return settings, service


def main(argv: Sequence[str]) -> int:
    try:
        options = _options(argv)
        context = context_from(options.context, os.environ)
        app, _ = build(
            context,
            outdir=os.environ.get("CDK_OUTDIR", "cdk.out"),
            region=region_in(os.environ),
            account=said_account(os.environ),
            reviewed=not options.without_review,
        )
    except InvalidConfiguration as refused:
        print(f"forebay: {refused}", file=sys.stderr)
        return 2
    app.synth()
    return 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.app", description="write the CloudFormation template")
    parser.add_argument("-c", "--context", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--without-review", action="store_true", help="for the twin alone; it saves some seconds")
    return parser.parse_args(argv)


def context_from(pairs: Iterable[str], env: Mapping[str, str]) -> dict[str, Any]:
    """The `cdk` command hands over all context by itself; run by hand, it is cdk.json's and the arguments' `pairs`."""
    given = dict(pair.partition("=")[::2] for pair in pairs)
    if "CDK_CONTEXT_JSON" in env:
        return {**json.loads(env["CDK_CONTEXT_JSON"]), **given}
    return {**json.loads(CDK_JSON.read_text())["context"], **given}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
