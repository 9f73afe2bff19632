"""The context of the CDK, in which settings are given.

In: CDK context, from `cdk.json` and `-c name=value`. `environments` holds a group of settings for each environment, and `-c
env=NAME` picks one. A setting outside the groups holds for all of them, and one on the command line wins. Out: checked
`Settings`. Unknown names and bad values are refused at synth, all together (`InvalidConfiguration`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from forebay.errors import InvalidConfiguration, Problem, meant
from forebay.refusal import problems_of
from infra.refusals import contradictions
from infra.settings import Settings

_OF_THE_CDK = re.compile(r"(@|aws:|aws-|cdk-|.*:account=|acknowledged-issue-numbers$)")


def settings_in(context: Mapping[str, Any]) -> Settings:
    """From all of an app's context, except the CDK's own keys."""
    ours = {key: value for key, value in context.items() if not _OF_THE_CDK.match(key)}
    groups = ours.pop("environments", {})
    problems = list(_unusable_groups(groups))
    if problems:
        raise InvalidConfiguration(problems)
    env = str(ours.get("env", "dev"))
    if groups and env not in groups:
        raise InvalidConfiguration.one(
            "env", f"there is no environment {env!r}", f"declared: {', '.join(sorted(groups))}"
        )
    problems += _unknown_names_elsewhere(groups, env)
    try:
        settings = Settings(**{**groups.get(env, {}), **ours})
    except ValidationError as refused:
        raise InvalidConfiguration([*problems, *_explained(refused)]) from None
    problems += contradictions(settings)
    if problems:
        raise InvalidConfiguration(problems)
    return settings


def place_of_declarations(context: Mapping[str, Any]) -> str:
    """The place of the declarations, even if other settings are wrong."""
    return _said_in(context, "service")


def engine_in(context: Mapping[str, Any]) -> str:
    """The engine, whatever else is wrong; one that there is not is for `Settings` to name."""
    return _said_in(context, "engine") or str(Settings.model_fields["engine"].default)


def _said_in(context: Mapping[str, Any], name: str) -> str:
    groups = context.get("environments", {})
    group = groups.get(str(context.get("env", "dev")), {}) if isinstance(groups, Mapping) else {}
    return str(context.get(name, group.get(name, "") if isinstance(group, Mapping) else ""))


def _unusable_groups(groups: Any) -> Iterator[Problem]:
    if not isinstance(groups, Mapping):
        yield Problem("environments", "is not a group of settings by environment", 'such as {"dev": {}, "prod": {}}')
        return
    for name, group in groups.items():
        if not isinstance(group, Mapping):
            yield Problem(f"environments.{name}", "is not a group of settings", 'such as {"workers": 10}')
        elif "env" in group:
            yield Problem(f"environments.{name}.env", "names itself twice", "remove it")


def _unknown_names_elsewhere(groups: Mapping[str, Any], env: str) -> Iterator[Problem]:
    """A typo in the group of prod should show when dev is deployed, not on the day of prod."""
    for name, group in groups.items():
        for key in group if name != env else ():
            if key not in Settings.model_fields:
                yield Problem(f"environments.{name}.{key}", "is unknown", _near(key))


def _explained(refused: ValidationError) -> Iterator[Problem]:
    for problem in problems_of(refused, lambda path: path or "context"):
        if problem.what == "is unknown":
            yield Problem(problem.where, problem.what, _near(problem.where))
        else:
            yield Problem(problem.where, problem.what, Settings.model_fields[problem.where].description or "")


def _near(key: str) -> str:
    return meant(key, Settings.model_fields, "infra/README.md lists the settings")
