"""Enforces the policies of roles for each request of a deployed job or function.

Jobs, functions and schedules run here with their own role as identity (see `clients`), as on AWS. Each request is held
against the role's policies, and against what a bucket's policy denies. A request that is not allowed is answered with
AccessDenied, in a sentence that names the role, the action and the resource. Some requests need a second permission, which is
checked as well: an encrypted object needs its key, and a missing object needs s3:ListBucket, because S3 would hide that it is
missing. The first use of each statement, and each refusal, is a line of `rights.jsonl` in the twin's folder.

Not judged: trust policies and boundaries of roles, policies of topics, queues, keys and functions, and a person at this
machine.

Fixed in moto 5.2.5: resources and most conditions of a policy are not looked at, nor are inline policies' roles known
without an STS session.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse
from xml.etree import ElementTree

from moto.core.authorization import ActionAuthenticatorMixin
from moto.core.exceptions import AccessDeniedError, JsonRESTError
from moto.core.responses import BaseResponse
from moto.iam.models import iam_backends
from moto.s3.exceptions import BucketAccessDeniedError, S3AccessDeniedError, S3ClientError
from moto.s3.models import S3Backend, s3_backends
from moto.sns.models import sns_backends
from moto.sqs.models import sqs_backends

from forebay_local.twin.clients import A_PERSON, role_of, who_of
from forebay_local.twin.patch import Patch, apply
from forebay_local.twin.policy import USED, Call, judge

SIGNED = re.compile(r"Credential=([^/]+)/\d+/[^/]+/([^/]+)/")
SERVICES = {"monitoring": "cloudwatch"}
"""IAM's name of a service, where its signatures have another one."""
ACTIONS = {
    "s3:HeadBucket": "s3:ListBucket",
    "s3:GetBucketVersions": "s3:ListBucketVersions",
    "lambda:Invoke": "lambda:InvokeFunction",
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
}
"""The IAM action of a request, if it has another name."""
READ_OF_BUCKETS = {
    "publicAccessBlock": "s3:GetBucketPublicAccessBlock",
    "encryption": "s3:GetEncryptionConfiguration",
}
"""By the query of a GET on a bucket: rights that moto takes for s3:ListBucket."""
PARTS = {"uploads", "uploadId"}
"""Parameters of a request for a multipart upload, whose parts S3 decrypts to combine them."""
OVER_TLS = {"aws:SecureTransport": "true", "s3:TlsVersion": "1.3"}
"""As on AWS; the twin itself speaks plain HTTP."""
_USE = ("kms:GenerateDataKey", "kms:Decrypt")

_reported: set[tuple[str, ...]] = set()
_reporting = threading.Lock()
_folder: Path | None = None
_authorize = ActionAuthenticatorMixin._authenticate_and_authorize_action


def install(folder: Path | None) -> None:
    global _folder
    _folder = folder
    apply(PATCHES, relied_on)


def authorize(self: Any, iam_request_cls: type, resource: str = "*") -> None:
    signed = SIGNED.search(self.headers.get("Authorization", ""))
    caller = who_of(signed.group(1)) if signed else A_PERSON
    roles = iam_backends[self.current_account][self.partition].get_roles()
    role = next((role for role in roles if role.name == caller), None)
    if role is None or signed is None:
        _authorize(self, iam_request_cls, resource)
        return
    service = SERVICES.get(signed.group(2), signed.group(2))
    documents = documents_of(role)
    for call in _calls(self, service, resource):
        denied = list(_denials(self, call)) if service == "s3" else []
        verdict = judge([*documents, *denied], call)
        _report(caller, call, verdict.allowed, verdict.by)
        if not verdict.allowed:
            raise _refusal(self, service, f"{caller} may not {call.action} on {call.resource}")


def documents_of(role: Any) -> list[Any]:
    """Its inline policies, and the managed ones that are attached, in which the CDK writes what is too long for one."""
    attached = [(one, one.default_version_id) for one in role.managed_policies.values()]
    texts = [version.document for one, default in attached for version in one.versions if version.version_id == default]
    return [_parsed(text) for text in (*role.policies.values(), *texts)]


# --- the permissions that a request needs ---


def _calls(request: Any, service: str, resource: str) -> Iterator[Call]:
    asked = f"{service}:{request._get_action()}"
    action = ACTIONS.get(asked, asked)
    if service == "s3":
        yield from _of_s3(request, action, resource)
        return
    region, account = request.region, request.current_account
    here = f"arn:{request.partition}:{service}:{region}:{account}:"
    ask = request._get_param
    if service == "sqs":
        name = str(ask("QueueUrl") or ask("QueueName") or "*").rpartition("/")[2]
        yield Call(action, here + name)
        found: Any = sqs_backends[account][region].queues.get(name)
        yield from _with_key(
            getattr(found, "kms_master_key_id", None), action, {"SendMessage": _USE, "Receive": _USE[1:]}
        )
    elif service == "sns":
        arn = str(ask("TopicArn") or "*")
        yield Call(action, arn)
        found = sns_backends[account][region].topics.get(arn)
        yield from _with_key(getattr(found, "kms_master_key_id", None), action, {"Publish": _USE})
    elif service == "glue" and ask("DatabaseName"):
        database, table = ask("DatabaseName"), ask("Name") or (ask("TableInput") or {}).get("Name")
        for place in ("catalog", f"database/{database}", *([f"table/{database}/{table}"] if table else [])):
            yield Call(action, here + place)
    elif service == "glue":
        yield Call(action, f"{here}job/{ask('JobName') or ask('Name')}")
    elif service == "lambda":
        yield Call(action, f"{here}function:{role_of(str(ask('FunctionName'))).rpartition(':')[2]}")
    elif service == "scheduler":
        yield Call(action, f"{here}schedule/{ask('groupName')}/{ask('Name') or ask('name')}")
    elif service == "kms":
        key = str(ask("KeyId"))
        yield Call(action, key if key.startswith("arn:") else f"{here}key/{key}")
    elif service == "logs":
        yield Call(action, f"{here}log-group:{ask('logGroupName')}:log-stream:{ask('logStreamName')}")
    elif service == "cloudformation":
        yield Call(action, f"{here}stack/{ask('StackName')}/1")
    elif service == "events":
        yield Call(action, f"{here}rule/{ask('Name') or ask('Rule')}")
    elif service == "ssm":
        yield Call(action, f"{here}parameter{ask('Name')}")
    elif service == "iam":
        role = ask("PolicySourceArn") or f"arn:{request.partition}:iam::{account}:role/{ask('RoleName')}"
        yield Call(action, str(role))
    elif service == "cloudwatch":
        alarms = action.endswith("DescribeAlarms")
        yield Call(action, f"{here}alarm:*" if alarms else "*", {"cloudwatch:namespace": str(ask("Namespace"))})
    elif service == "emr-serverless":
        run = f"/jobruns/{ask('jobRunId')}" if ask("jobRunId") else ""
        yield Call(action, f"{here}/applications/{ask('applicationId')}{run}")
        if action.endswith("StartJobRun"):
            yield Call(
                "iam:PassRole", str(ask("executionRoleArn")), {"iam:PassedToService": f"{service}.amazonaws.com"}
            )
    else:
        yield Call(action, "*")


def _of_s3(request: Any, action: str, resource: str) -> Iterator[Call]:
    bucket_arn, slash, key = resource.partition("/")
    bucket: Any = _backend(request).buckets.get(bucket_arn.rpartition(":")[2])
    asked = parse_qs(urlparse(request.uri).query, keep_blank_values=True)
    if action == "s3:DeleteObject" and not slash:
        for one in re.findall(r"<Object>(.*?)</Object>", request.raw_body.decode(), re.DOTALL):
            (name,) = re.findall(r"<Key>(.*?)</Key>", one)
            of_version = f"{action}Version" if "<VersionId>" in one else action
            yield Call(of_version, f"{bucket_arn}/{_unescaped(name)}", OVER_TLS)
        return
    if request.method == "GET" and not slash:
        action = next((READ_OF_BUCKETS[name] for name in asked if name in READ_OF_BUCKETS), action)
    context = dict(OVER_TLS)
    if action == "s3:PutObject":
        creates = "partNumber" not in asked and "uploads" not in asked
        context["s3:ObjectCreationOperation"] = str(creates).lower()
        if header := request.headers.get("If-None-Match"):
            context["s3:if-none-match"] = header
    yield Call(action, resource, context)
    source = request.headers.get("x-amz-copy-source")
    if source and action == "s3:PutObject":
        yield Call("s3:GetObject", f"{bucket_arn.rpartition(':')[0]}:{source.lstrip('/').partition('?')[0]}", OVER_TLS)
    reads = action in ("s3:GetObject", "s3:GetObjectVersion") and bucket is not None
    if reads and key not in bucket.keys:
        yield Call("s3:ListBucket", bucket_arn, OVER_TLS)
    elif request.method != "HEAD":
        yield from _with_key(
            _key_of(bucket), action, {"PutObject": _USE if asked.keys() & PARTS else _USE[:1], "GetObject": _USE[1:]}
        )


def _with_key(key_arn: str | None, action: str, needs: dict[str, tuple[str, ...]]) -> Iterator[Call]:
    if key_arn:
        for part, rights in needs.items():
            if part in action:
                yield from (Call(right, key_arn) for right in rights)


def _key_of(bucket: Any) -> str | None:
    rule = ((bucket.encryption if bucket else None) or {}).get("Rule", {})
    rule = rule[0] if isinstance(rule, list) else rule
    found = rule.get("ApplyServerSideEncryptionByDefault", {}).get("KMSMasterKeyID")
    return str(found) if found else None


def _denials(request: Any, call: Call) -> Iterator[Any]:
    """The denials of the bucket's own policy; its grants are not needed within one account."""
    bucket = _backend(request).buckets.get(call.resource.rpartition(":::")[2].partition("/")[0])
    if call.action.startswith("s3:") and bucket is not None and bucket.policy:
        document = _parsed(bucket.policy.decode())
        yield {"Statement": [one for one in document["Statement"] if one["Effect"] == "Deny"]}


def _backend(request: Any) -> S3Backend:
    return s3_backends[request.current_account][request.partition]


def _unescaped(text: str) -> str:
    return ElementTree.fromstring(f"<k>{text}</k>").text or ""


@lru_cache(maxsize=128)
def _parsed(text: str) -> Any:
    return json.loads(text)


# --- reporting ---


def _refusal(request: Any, service: str, message: str) -> Exception:
    if service == "s3":
        bulk = request.method == "POST" and request.data.get("Action") == "DeleteObject"
        return BucketAccessDeniedError(request.bucket_name) if bulk else _Refused(message)
    if "json" in str(request.headers.get("Content-Type", "")):
        return JsonRESTError("AccessDeniedException", message)
    return AccessDeniedError(*message.split(" may not "))


class _Refused(S3AccessDeniedError):
    def __init__(self, message: str) -> None:
        S3ClientError.__init__(self, "AccessDenied", message)


def _report(caller: str, call: Call, allowed: bool, by: str) -> None:
    """Once for each statement and action; a refusal, once for each resource."""
    once = (caller, call.action, by) if allowed else (caller, call.action, call.resource)
    with _reporting:
        if once in _reported:
            return
        _reported.add(once)
        line = {"role": caller, "action": call.action, "resource": call.resource, "allowed": allowed, "by": by}
        if not allowed:
            print(f"refused: {caller} may not {call.action} on {call.resource} {by}", file=sys.stderr, flush=True)
        if _folder is not None:
            with (_folder / USED).open("a") as out:
                print(json.dumps(line), file=out)


PATCHES = (
    Patch(
        ActionAuthenticatorMixin,
        "_authenticate_and_authorize_action",
        ("self", "iam_request_cls", "resource"),
        authorize,
    ),
)


def relied_on() -> list[tuple[Any, str]]:
    backend = iam_backends["123456789012"]["aws"]
    return [
        (backend, "get_roles"),
        *((BaseResponse, name) for name in ("_get_action", "_get_param", "get_current_account")),
        *((S3Backend("eu-west-1", "123456789012"), name) for name in ("buckets",)),
        (sqs_backends["123456789012"]["eu-west-1"], "queues"),
        (sns_backends["123456789012"]["eu-west-1"], "topics"),
    ]
