"""Stacks whose creation fails, and protected stacks: handled as CloudFormation documents it.

A failed creation is rolled back: its resources are deleted, except those that must always be retained. The stack stays as
ROLLBACK_COMPLETE, which can only be deleted. `RetainExceptOnCreate` keeps a resource from every deletion but this one.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html

Fixed in moto 5.2.5: the request itself fails, the resources stay, and the stack is neither there nor gone. Listing its
resources creates them again.
`RetainExceptOnCreate` is not known; a protected stack can be deleted, and UpdateTerminationProtection is missing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from moto.cloudformation import models, parsing
from moto.cloudformation.exceptions import ValidationError
from moto.cloudformation.responses import CloudFormationResponse
from moto.core.responses import ActionResult

from forebay_local.twin.patch import Patch

ROLLED_BACK = "ROLLBACK_COMPLETE"

_create: Callable[[Any], None] = models.Stack.create_resources
_delete: Callable[[Any], None] = parsing.ResourceMap.delete
_delete_stack: Callable[[Any, str], None] = models.CloudFormationBackend.delete_stack
_list: Callable[[Any, str], Any] = models.CloudFormationBackend.list_stack_resources
_update_stack: Callable[..., Any] = models.CloudFormationBackend.update_stack


def create_resources(self: Any) -> None:
    try:
        _create(self)
    except Exception as why:  # moto raises whatever the API of the resource does
        reason = str(getattr(why, "message", "") or why)
        self._add_stack_event("ROLLBACK_IN_PROGRESS", resource_status_reason=reason)
        with _policy_read_as(self.resource_map, "Delete"):
            _delete(self.resource_map)
        self.status = ROLLED_BACK
        self._add_stack_event(ROLLED_BACK, resource_status_reason=reason)


def delete(self: Any) -> None:
    with _policy_read_as(self, "Retain"):
        _delete(self)


@contextlib.contextmanager
def _policy_read_as(resources: Any, policy: str) -> Iterator[None]:
    """`RetainExceptOnCreate` in the words that moto knows."""
    before = resources._resource_json_map
    excepted = {"DeletionPolicy": policy}
    resources._resource_json_map = {
        name: {**one, **excepted} if one.get("DeletionPolicy") == "RetainExceptOnCreate" else one
        for name, one in before.items()
    }
    yield
    resources._resource_json_map = before


def list_stack_resources(self: Any, stack_name_or_id: str) -> Any:
    stack = self.get_stack(stack_name_or_id)
    return (stack, []) if stack.status == ROLLED_BACK else _list(self, stack_name_or_id)


def delete_stack(self: Any, name_or_stack_id: str) -> None:
    for stack in list(self.stacks.values()):
        if name_or_stack_id in (stack.name, stack.stack_id) and stack.enable_termination_protection:
            raise ValidationError(
                stack.name, f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled"
            )
    _delete_stack(self, name_or_stack_id)


def update_stack(self: Any, name: str, *args: Any, **more: Any) -> Any:
    stack = self.get_stack(name)
    if stack.status == ROLLED_BACK:
        raise ValidationError(name, f"Stack:{stack.stack_id} is in {ROLLED_BACK} state and can not be updated.")
    return _update_stack(self, name, *args, **more)


def update_termination_protection(self: Any) -> ActionResult:
    stack = self.cloudformation_backend.get_stack(self._get_param("StackName"))
    stack.enable_termination_protection = self._get_bool_param("EnableTerminationProtection", False)
    return ActionResult({"StackId": stack.stack_id})


PATCHES = (
    Patch(models.Stack, "create_resources", ("self",), create_resources),
    Patch(parsing.ResourceMap, "delete", ("self",), delete),
    Patch(models.CloudFormationBackend, "delete_stack", ("self", "name_or_stack_id"), delete_stack),
    Patch(models.CloudFormationBackend, "list_stack_resources", ("self", "stack_name_or_id"), list_stack_resources),
    Patch(
        models.CloudFormationBackend,
        "update_stack",
        ("self", "name", "template", "role_arn", "parameters", "tags"),
        update_stack,
    ),
    Patch(CloudFormationResponse, "update_termination_protection", None, update_termination_protection, new=True),
)


def relied_on() -> list[tuple[Any, str]]:
    make_stack: Any = models.Stack
    stack = make_stack("id", "name", {}, {}, "123456789012", "eu-west-1")
    return [
        *((stack, name) for name in ("_add_stack_event", "enable_termination_protection", "resource_map", "status")),
        (stack.resource_map, "_resource_json_map"),
        (models.CloudFormationBackend, "get_stack"),
    ]
