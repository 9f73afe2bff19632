"""The parts of an account that moto lacks: its quotas, and IAM's simulation of a role's policies.

Fixed in moto 5.2.5: Lambda's GetAccountSettings, Service Quotas' ListServiceQuotas and IAM's SimulatePrincipalPolicy
are missing. Here the quotas are AWS's defaults, and a role is judged as `rights` judges it.
"""

from __future__ import annotations

import json
from typing import Any

from moto.awslambda import urls
from moto.awslambda.responses import LambdaResponse
from moto.core.responses import ActionResult
from moto.iam.models import iam_backends
from moto.iam.responses import IamResponse
from moto.servicequotas.responses import ServiceQuotasResponse

from forebay_local.twin.clients import role_of
from forebay_local.twin.glue import RUNS_OF_ACCOUNT
from forebay_local.twin.patch import Patch, apply
from forebay_local.twin.policy import Call, judge
from forebay_local.twin.rights import documents_of

QUOTAS = {
    "glue": (
        ("Max concurrent job runs per account", "L-TWIN0001", float(RUNS_OF_ACCOUNT)),
        ("Max task DPUs per account", "L-TWIN0002", 1000.0),
    )
}
"""By service. The names are AWS's, the codes are not."""
FUNCTIONS_AT_ONCE = 1000


def install() -> None:
    apply(PATCHES, relied_on)
    urls.url_paths.setdefault(r"{0}/2016-08-19/account-settings/?$", LambdaResponse.dispatch)


def get_account_settings(self: Any) -> str:
    limit = {"ConcurrentExecutions": FUNCTIONS_AT_ONCE, "UnreservedConcurrentExecutions": FUNCTIONS_AT_ONCE}
    return json.dumps({"AccountLimit": limit, "AccountUsage": {}})


def list_service_quotas(self: Any) -> str:
    service = str(json.loads(self.body)["ServiceCode"])
    quotas = [
        {"ServiceCode": service, "QuotaName": name, "QuotaCode": code, "Value": value}
        for name, code, value in QUOTAS.get(service, ())
    ]
    return json.dumps({"Quotas": quotas})


def simulate_principal_policy(self: Any) -> ActionResult:
    roles = iam_backends[self.current_account][self.partition].get_roles()
    role = next(one for one in roles if one.name == role_of(self._get_param("PolicySourceArn")))
    documents = documents_of(role)
    context = {one["ContextKeyName"]: one["ContextKeyValues"][0] for one in self._get_param("ContextEntries", [])}
    results = []
    for action in self._get_param("ActionNames"):
        for resource in self._get_param("ResourceArns", ["*"]):
            allowed = judge(documents, Call(action, resource, context)).allowed
            decision = "allowed" if allowed else "implicitDeny"
            results.append({"EvalActionName": action, "EvalResourceName": resource, "EvalDecision": decision})
    return ActionResult({"EvaluationResults": results, "IsTruncated": False})


PATCHES = (
    Patch(LambdaResponse, "get_account_settings", None, get_account_settings, new=True),
    Patch(ServiceQuotasResponse, "list_service_quotas", None, list_service_quotas, new=True),
    Patch(IamResponse, "simulate_principal_policy", None, simulate_principal_policy, new=True),
)


def relied_on() -> list[tuple[Any, str]]:
    return [(iam_backends["123456789012"]["aws"], "get_roles")]
