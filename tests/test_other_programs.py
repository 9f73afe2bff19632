"""Commands of the AWS CLI and the CDK in the documents, read by the models that those programs are made from."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise

import jmespath
import pytest
from botocore import xform_name
from botocore.session import get_session

from infra.bundle import ROOT
from infra.settings import Settings
from tests.test_blocks import BLOCKS, DOCUMENTS

OF_ALL = {"output", "query", "region", "profile", "cli-input-json", "cli-binary-format", "no-cli-pager"}
OF_THE_CLI = {
    "s3": {
        "cp": {"recursive"},
        "sync": {"exclude"},
        "presign": {"expires-in"},
        "ls": set(),
        "mb": set(),
        "rm": {"recursive", "exclude"},
    },
    "logs": {"tail": {"since"}},
}
"""Commands that the AWS CLI adds to an API, and the options of theirs that documents use."""
ENDS = {"|", ";", "done", ">", "&&"}
CDK = {"bootstrap", "deploy", "destroy", "diff", "import"}


def typed(name: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each call of a program in a block or in a line of prose, with the document that has it."""
    blocks = [
        (block.document, line) for block in BLOCKS if block.language == "console" for line in _commands(block.text)
    ]
    prose = [
        (str(document.relative_to(ROOT)), " ".join(quoted.split()))
        for document in DOCUMENTS
        for quoted in re.findall(
            rf"(?<!`)`({name} [^`]+)`(?!`)", re.sub(r"```.*?```", "", document.read_text(), flags=re.S)
        )
    ]
    for document, line in [*blocks, *prose]:
        words = shlex.split(line, comments=True)
        words = [part for word in words for part in ((word[:-1], ";") if word.endswith(";") else (word,))]
        for at, word in enumerate(words):
            if word == name:
                rest = words[at + 1 :]
                end = next((n for n, one in enumerate(rest) if one in ENDS), len(rest))
                yield document, tuple(rest[:end])


def _commands(text: str) -> list[str]:
    """Each with its further lines. A shell drops the end of a line after a backslash."""
    return re.findall(r"^ *\$ (.*?)(?=\n *\$ |\Z)", text.replace("\\\n", ""), re.S | re.M)


AWS = sorted({one for one in typed("aws") if not one[1][0].startswith("-")})  # `aws --version` is of no service


@pytest.mark.parametrize(("document", "words"), AWS)
def test_a_command_of_the_aws_cli_is_of_the_api(document: str, words: tuple[str, ...]) -> None:
    service, verb, *rest = words
    following = [*rest[1:], ""]
    options = {word[2:]: value for word, value in zip(rest, following, strict=False) if word.startswith("--")}
    assert isinstance(jmespath.compile(options.get("query", "@")), jmespath.parser.ParsedResult)
    if verb in OF_THE_CLI.get(service, {}):
        assert set(options) <= OF_THE_CLI[service][verb] | OF_ALL
        return
    model = get_session().get_service_model(service.removesuffix("api"))
    (operation,) = (one for one in model.operation_names if xform_name(one, "-") == verb)
    shape = model.operation_model(operation).input_shape
    members = {xform_name(member, "-") for member in shape.members}
    assert set(options) <= members | OF_ALL
    needed = {xform_name(member, "-") for member in shape.required_members}
    whole = "cli-input-json" in options or not rest
    assert whole or needed <= set(options), "an option that the operation needs"


def test_the_documents_have_such_commands() -> None:
    assert {words[0] for _, words in AWS} >= {"glue", "kms", "lambda", "s3", "s3api", "scheduler"}


@pytest.mark.parametrize(("document", "words"), sorted(set(typed("cdk"))))
def test_a_command_of_the_cdk_has_settings_that_exist(document: str, words: tuple[str, ...]) -> None:
    assert words[0] in CDK
    given = [pair.partition("=")[0] for flag, pair in pairwise(words) if flag == "-c"]
    assert set(given) <= set(Settings.model_fields)
