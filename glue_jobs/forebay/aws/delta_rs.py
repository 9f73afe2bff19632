"""How delta-rs reaches S3: with the region, the endpoint and the credentials that boto3 found.

delta-rs has its own credentials chain, which supports neither profiles nor `credential_process` nor SSO. So it gets the
credentials that boto3's chain has resolved, frozen for the duration of one command. In: the environment. Out: delta-rs's
storage options. Without credentials, or with a profile that gives none, boto3 raises its own exceptions.
"""

from __future__ import annotations

import os

from botocore.exceptions import NoCredentialsError

from forebay.aws.client import session


def storage_options() -> dict[str, str]:
    here = session()
    found = here.get_credentials()
    if found is None:
        raise NoCredentialsError
    keys = found.get_frozen_credentials()
    options = {
        "aws_region": here.region_name or "us-east-1",
        "aws_access_key_id": keys.access_key,
        "aws_secret_access_key": keys.secret_key,
    }
    if keys.token:
        options["aws_session_token"] = keys.token
    if endpoint := os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"):
        options["aws_endpoint_url"] = endpoint
        options["aws_allow_http"] = str(endpoint.startswith("http:")).lower()
    return options
