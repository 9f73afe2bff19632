"""Teaches moto's CloudFormation our kinds, and patches how it handles a stack.

Fixed in moto 5.2.5: a resource of an unknown type is ignored and the stack is complete all the same. A property
that an API refuses is a server error without words. A resource that cannot be updated is forgotten by the update. A stack
made through a change set has no outputs, and its next update fails on the old change set. Describing a deleted stack creates
the resources of its outputs again. The `Arn` of a log group lacks the `:*` at its end. A template's address is understood for
"localhost" and AWS only; JSON is parsed as YAML, slowly. A bucket policy's statement that denies is taken to deny even where
its condition is not met, so the usual refusal of calls without TLS refuses all. `rights` judges by those policies instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from moto.cloudformation import models, parsing, responses
from moto.cloudformation.exceptions import ValidationError
from moto.iam.access_control import PermissionResult
from moto.logs.models import LogGroup
from moto.s3.models import FakeBucket

from forebay_local.twin import clients
from forebay_local.twin.cloudformation import importing, rollback
from forebay_local.twin.cloudformation.kinds import COMPLETED, KINDS, Kind, Made, Order
from forebay_local.twin.patch import Patch, apply

NOTHING_TO_MAKE = ("AWS::CDK::Metadata", *parsing.NULL_MODELS)

_class_of: Callable[[str], Any] = parsing.resource_class_from_type
_updated = parsing.parse_and_update_resource
_responses: Any = responses
_from_s3 = _responses.get_stack_from_s3_url
_yaml_or_json = models.Stack.parse_template
_outputs: Any = models.Stack.outputs
_execute = models.CloudFormationBackend.execute_change_set
_of_log_group: Callable[..., str] = LogGroup.get_cfn_attribute
_forget = models.CloudFormationBackend.delete_change_set


def install(endpoint: str) -> None:
    """Applies the patches, and lets moto make our kinds by calls to `endpoint`, which is itself."""
    apply(PATCHES, relied_on)
    apply(rollback.PATCHES, rollback.relied_on)
    apply(importing.PATCHES, importing.relied_on)

    def ask(region: str) -> Callable[[str], Any]:
        return lambda service: clients.client(service, endpoint, region)

    makers, names = parsing.get_model_map(), parsing.get_name_type_map()
    for kind in KINDS:
        makers[kind.type], names[kind.type] = Maker(kind, ask), kind.named_by  # type: ignore[assignment]
    for type_, complete in COMPLETED.items():
        if not isinstance(makers[type_], Completer):
            makers[type_] = Completer(makers[type_], complete, ask)  # type: ignore[assignment]


# --- makers, in the place of moto's own classes ---

Ask = Callable[[str], Callable[[str], Any]]


class Maker:
    """Makes resources of one of our kinds; moto calls it as it calls its own classes."""

    def __init__(self, kind: Kind, ask: Ask) -> None:
        self._kind, self._ask = kind, ask

    def create_from_cloudformation_json(
        self, name: str, resource: Any, account_id: str, region_name: str, **_: Any
    ) -> Made:
        return self._make(Order(name, resource["Properties"], region_name, account_id, self._ask(region_name)))

    def update_from_cloudformation_json(
        self,
        original_resource: Made,
        new_resource_name: str,
        cloudformation_json: Any,
        account_id: str,
        region_name: str,
    ) -> Made:
        """Another name is another resource: made first, then the old one removed, as CloudFormation does."""
        properties, named_by = cloudformation_json["Properties"], self._kind.named_by
        old_name = original_resource.physical_resource_id
        name = str(properties.get(named_by) or old_name)
        same = not named_by or name == old_name
        ask = self._ask(region_name)
        made = self._make(Order(name, properties, region_name, account_id, ask, original_resource if same else None))
        if not same:
            original_resource.delete(account_id, region_name)
        return made

    def delete_from_cloudformation_json(self, *_: Any) -> None:
        """`Made` removes itself."""

    def has_cfn_attr(self, _: str) -> bool:
        return True

    def _make(self, order: Order) -> Made:
        try:
            return self._kind.make(order)
        except (BotoCoreError, ClientError, KeyError, ValueError) as why:
            raise ValidationError(order.name, f"{self._kind.type} {order.name}: {why}") from why


class Completer:
    """moto's own maker of a type, and what it leaves out."""

    def __init__(self, stock: Any, complete: Callable[[Order, Any], None], ask: Ask) -> None:
        self._stock, self._complete, self._ask = stock, complete, ask

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stock, name)

    def create_from_cloudformation_json(
        self, name: str, resource: Any, account_id: str, region_name: str, **more: Any
    ) -> Any:
        made = self._stock.create_from_cloudformation_json(name, resource, account_id, region_name, **more)
        return self._completed(made, name, resource, account_id, region_name)

    def update_from_cloudformation_json(
        self,
        original_resource: Any,
        new_resource_name: str,
        cloudformation_json: Any,
        account_id: str,
        region_name: str,
    ) -> Any:
        update, made = self._stock.update_from_cloudformation_json, original_resource
        if not hasattr(update, "__isabstractmethod__"):
            made = update(
                original_resource=original_resource,
                new_resource_name=new_resource_name,
                cloudformation_json=cloudformation_json,
                account_id=account_id,
                region_name=region_name,
            )
        return self._completed(made, new_resource_name, cloudformation_json, account_id, region_name)

    def _completed(self, made: Any, name: str, resource: Any, account_id: str, region_name: str) -> Any:
        self._complete(Order(name, resource["Properties"], region_name, account_id, self._ask(region_name)), made)
        return made


# --- templates and stacks ---


def resource_class_from_type(resource_type: str) -> Any:
    found = _class_of(resource_type)
    if found is None and resource_type not in NOTHING_TO_MAKE:
        raise ValidationError(resource_type, f"the local twin cannot make a resource of type {resource_type}")
    return found


def parse_and_update_resource(
    logical_id: str, resource_json: Any, resources_map: Any, account_id: str, region_name: str
) -> Any:
    made = _updated(logical_id, resource_json, resources_map, account_id, region_name)
    return resources_map[logical_id] if made is None else made


def get_stack_from_s3_url(template_url: str, account_id: str, partition: str) -> Any:
    return _from_s3(template_url.replace("//127.0.0.1", "//localhost"), account_id, partition)


def parse_template(template: Any) -> Any:
    try:
        return json.loads(template)
    except ValueError:
        return _yaml_or_json(template)


def log_group_attribute(self: Any, attribute_name: str) -> str:
    found = _of_log_group(self, attribute_name)
    return f"{found}:*" if attribute_name == "Arn" else found


def outputs(self: Any) -> Any:
    return None if self.status.startswith(("DELETE", "ROLLBACK")) else _outputs.fget(self)


def execute_change_set(self: Any, change_set_name: str, stack_name: str | None = None) -> None:
    changes = self.describe_change_set(change_set_name)
    importing.adopt(self, changes)
    _execute(self, change_set_name, stack_name)
    stack = self.stacks[changes.stack_id]
    if stack.status == rollback.ROLLED_BACK:
        return
    stack._parse_template()
    stack.output_map = stack._create_output_map()


def delete_change_set(self: Any, change_set_name: str) -> None:
    """One that is not there is no error."""
    if any(change_set_name in (known.change_set_id, known.change_set_name) for known in self.change_sets.values()):
        _forget(self, change_set_name)


def get_permission(self: Any, action: str, resource: str) -> Any:
    return PermissionResult.NEUTRAL


PATCHES = (
    Patch(parsing, "resource_class_from_type", ("resource_type",), resource_class_from_type),
    Patch(
        parsing,
        "parse_and_update_resource",
        ("logical_id", "resource_json", "resources_map", "account_id", "region_name"),
        parse_and_update_resource,
    ),
    Patch(responses, "get_stack_from_s3_url", ("template_url", "account_id", "partition"), get_stack_from_s3_url),
    Patch(models.Stack, "parse_template", ("template",), staticmethod(parse_template)),
    Patch(models.Stack, "outputs", None, property(outputs)),
    Patch(
        models.CloudFormationBackend,
        "execute_change_set",
        ("self", "change_set_name", "stack_name"),
        execute_change_set,
    ),
    Patch(models.CloudFormationBackend, "delete_change_set", ("self", "change_set_name"), delete_change_set),
    Patch(LogGroup, "get_cfn_attribute", ("self", "attribute_name"), log_group_attribute),
    Patch(FakeBucket, "get_permission", ("self", "action", "resource"), get_permission),
)


def relied_on() -> list[tuple[Any, str]]:
    """The makers rely on this: moto looks types up in dictionaries which it keeps."""
    if parsing.get_model_map() is not parsing.get_model_map():
        raise TypeError("moto makes a new map of its CloudFormation types at each look")
    make_stack: Any = models.Stack
    stack = make_stack("id", "name", {}, {}, "123456789012", "eu-west-1")
    return [
        *((parsing, name) for name in ("get_model_map", "get_name_type_map", "NULL_MODELS")),
        *((stack, name) for name in ("status", "output_map", "_create_output_map", "_parse_template")),
    ]
