"""delta-rs is given the very credentials that boto3's chain finds, whatever kind of profile they come from."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from botocore.exceptions import NoCredentialsError

from forebay.aws.delta_rs import storage_options

FORGETS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_PROFILE",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
)


@pytest.fixture(autouse=True)
def only_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without AWS, save a folder for its configuration."""
    for name in FORGETS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return tmp_path


def test_a_profile_with_keys_in_a_file(only_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (only_files / "credentials").write_text(
        "[studio]\naws_access_key_id = AK\naws_secret_access_key = SK\naws_session_token = T\n"
    )
    (only_files / "config").write_text("[profile studio]\nregion = eu-north-1\n")
    monkeypatch.setenv("AWS_PROFILE", "studio")
    assert storage_options() == {
        "aws_region": "eu-north-1",
        "aws_access_key_id": "AK",
        "aws_secret_access_key": "SK",
        "aws_session_token": "T",
    }


def test_a_profile_whose_keys_a_process_gives(only_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"Version": 1, "AccessKeyId": "AK2", "SecretAccessKey": "SK2", "SessionToken": "T2"}
    (only_files / "keys.json").write_text(json.dumps(given))
    tells = f"{sys.executable} -c \"print(open('{only_files}/keys.json').read())\""
    (only_files / "config").write_text(f"[profile studio]\ncredential_process = {tells}\n")
    monkeypatch.setenv("AWS_PROFILE", "studio")
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert storage_options() == {
        "aws_region": "eu-west-3",
        "aws_access_key_id": "AK2",
        "aws_secret_access_key": "SK2",
        "aws_session_token": "T2",
        "aws_endpoint_url": "http://127.0.0.1:9",
        "aws_allow_http": "true",
    }


def test_no_credentials_are_told_as_such_and_not_looked_for_elsewhere() -> None:
    with pytest.raises(NoCredentialsError):
        storage_options()
