"""Change sets of type IMPORT: a stack takes over resources that exist, as CloudFormation documents it.

A request is refused if its template does more than import, or lets a resource go without a policy. A change set fails if a
resource does not exist or belongs to a stack. The twin imports buckets and keys, and nothing else.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/import-resources-manually.html

Fixed in moto 5.2.5: the resources that a change set should import are created. The summary of a template does
not say what identifies its resources.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from moto.cloudformation import models
from moto.cloudformation.exceptions import ValidationError
from moto.cloudformation.responses import CloudFormationResponse
from moto.core.responses import ActionResult
from moto.kms.models import kms_backends
from moto.s3.models import s3_backends

from forebay_local.twin.patch import Patch

_create = CloudFormationResponse.create_change_set
_summarize = CloudFormationResponse.get_template_summary

Resources = Mapping[str, Any]


@dataclass(frozen=True)
class Identified:
    """A type that can be imported: the property that names one of its resources, and how to find it."""

    by: str
    find: Callable[[Any, str], Any]


def _bucket(backend: Any, name: str) -> Any:
    return s3_backends[backend.account_id][backend.partition].buckets.get(name)


def _key(backend: Any, key_id: str) -> Any:
    found = kms_backends[backend.account_id][backend.region_name].keys.get(key_id)
    return None if found is None or found.key_state == "PendingDeletion" else found


IMPORTABLE = {"AWS::S3::Bucket": Identified("BucketName", _bucket), "AWS::KMS::Key": Identified("KeyId", _key)}


@dataclass(frozen=True)
class Wanted:
    """One of the resources to import; the last two are the parts of its identifier."""

    logical_id: str
    type: str
    by: str
    value: str

    def found(self, backend: Any) -> Any:
        return IMPORTABLE[self.type].find(backend, self.value)


# --- requests ---


def get_template_summary(self: Any) -> ActionResult:
    summary: Any = _summarize(self).result
    by_type: dict[str, list[str]] = {}
    for name, one in summary["Resources"].items():
        by_type.setdefault(one["Type"], []).append(name)
    summary["ResourceIdentifierSummaries"] = [
        {"ResourceType": kind, "LogicalResourceIds": names, "ResourceIdentifiers": [IMPORTABLE[kind].by]}
        for kind, names in by_type.items()
        if kind in IMPORTABLE
    ]
    return ActionResult(summary)


def create_change_set(self: Any) -> ActionResult:
    if self._get_param("ChangeSetType") != "IMPORT":
        return _create(self)
    backend, name, url = self.cloudformation_backend, self._get_param("StackName"), self._get_param("TemplateURL")
    body = self._get_stack_from_s3_url(url) if url else self._get_param("TemplateBody")
    stack = _stack_to_import_into(backend, name)
    tags = {one["Key"]: one["Value"] for one in self._get_param("Tags", [])}
    asked = [
        Wanted(one["LogicalResourceId"], one["ResourceType"], *next(iter(one["ResourceIdentifier"].items())))
        for one in self._get_param("ResourcesToImport", [])
    ]
    for refusal in _refusals(models.Stack.parse_template(body), asked, stack, tags):
        raise ValidationError(name, refusal)
    change_set_id, stack_id = backend.create_change_set(
        stack_name=name,
        change_set_name=self._get_param("ChangeSetName"),
        template=body,
        parameters={},
        description=self._get_param("Description"),
        role_arn=self._get_param("RoleARN"),
        change_set_type="UPDATE" if stack else "IMPORT",
    )
    _prepare(backend, backend.change_sets[change_set_id], asked)
    return ActionResult({"Id": change_set_id, "StackId": stack_id})


def _stack_to_import_into(backend: Any, name: str) -> Any:
    """None if a new one will be made. It takes the place of one that is under review, after an import that failed."""
    found = next((one for one in backend.stacks.values() if one.name == name), None)
    if found is not None and found.status == "REVIEW_IN_PROGRESS":
        del backend.stacks[found.stack_id]
        return None
    return found


def _prepare(backend: Any, change_set: Any, asked: Collection[Wanted]) -> None:
    change_set.change_set_type, change_set.imported = "IMPORT", asked
    change_set.changes = [models.Change("Import", one.logical_id, one.type) for one in asked]
    for failure in _failures(backend, asked):
        change_set.status, change_set.execution_status, change_set.changes = "FAILED", "UNAVAILABLE", []
        change_set.status_reason = failure
        return


def adopt(backend: Any, change_set: Any) -> None:
    """Before the change set is executed: its stack has these resources already, so that they are not created."""
    for one in getattr(change_set, "imported", ()):
        resource = one.found(backend)
        resource.cf_resource_type, resource.logical_resource_id = one.type, one.logical_id
        change_set.stack.resource_map._parsed_resources[one.logical_id] = resource


# --- what CloudFormation refuses ---


def _refusals(template: Any, asked: Collection[Wanted], stack: Any, tags: Mapping[str, str]) -> Iterator[str]:
    """In the order in which it looks, and in its words."""
    there = stack.template_dict if stack else {}
    resources, before = template["Resources"], there.get("Resources", {})
    names = {one.logical_id for one in asked}
    if not asked:
        yield "Must Provide at least one resource to import"
    for one in asked:
        yield from _refusals_of(one, resources)
    if unresolved := sorted(_named_in(resources) - resources.keys() - template.get("Parameters", {}).keys()):
        missing = f"Unresolved resource dependencies {_listed(unresolved)}"
        yield f"Template format error: {missing} in the Resources block of the template"
    if held := names & before.keys():
        yield f"Resources {_listed(held)} passed in ResourceToImport are already in a stack and cannot be imported."
    if others := resources.keys() - before.keys() - names:
        yield f"Resources {_listed(others)} is missing from ResourceToImport list"
    if changed := [name for name, one in before.items() if resources.get(name) != one]:
        yield (
            f"You have modified resources {_listed(changed)} in your template that are not being imported. "
            "Update, create or delete operations cannot be executed during import operations."
        )
    if free := [name for name in names if "DeletionPolicy" not in resources[name]]:
        yield f"The following resources to import {_listed(free)} must have DeletionPolicy attribute specified in the template."
    more = {"Outputs": template.get("Outputs", {}) != there.get("Outputs", {}), "Tags": tags and tags != _tags(stack)}
    if any(more.values()):
        yield f"As part of the import operation, you cannot modify or add {_listed(n for n, is_new in more.items() if is_new)}"


def _refusals_of(one: Wanted, resources: Resources) -> Iterator[str]:
    if one.type not in IMPORTABLE:
        yield f"the local twin cannot import a resource of type {one.type}"
    elif one.by != IMPORTABLE[one.type].by:
        yield f"Invalid resource identifier for resource type {one.type}. Expected [{IMPORTABLE[one.type].by}]"
    if one.logical_id not in resources:
        yield f"The logical resource ids [{one.logical_id}] provided in ResourceToImport do not exist in the template."
    elif one.type != (declared := resources[one.logical_id]["Type"]):
        yield (
            f"Resource type of [{one.logical_id}] passed in ResourceToImport does not match with resource type defined in "
            f"the template. Resource type in ResourceToImport: {one.type}; Resource type in Template: {declared}."
        )


def _failures(backend: Any, asked: Collection[Wanted]) -> Iterator[str]:
    """Reasons that it only finds when it looks for the resources."""
    for one in asked:
        found = one.found(backend)
        if found is None:
            yield f"Resource of type '{one.type}' with identifier '{one.value}' was not found."
        for stack in backend.stacks.values():
            if any(held is found for held in stack.resource_map._parsed_resources.values()):
                yield f"{one.value} already exists in stack {stack.stack_id}"


def _named_in(value: Any) -> set[str]:
    """The logical ids to which a part of a template refers."""
    match value:
        case list():
            return set().union(*map(_named_in, value))
        case {"Ref": str(name), **more} if not more:
            return set() if name.startswith("AWS::") else {name}
        case {"Fn::GetAtt": [name, _], **more} if not more:
            return {name}
        case {"Fn::Sub": str(text), **more} if not more:
            return {name for name in re.findall(r"\$\{(\w+)[.}]", text) if name != "AWS"}
        case dict():
            return set().union(*map(_named_in, value.values()))
    return set()


def _tags(stack: Any) -> Mapping[str, str]:
    return stack.tags if stack else {}


def _listed(names: Collection[str] | Iterator[str]) -> str:
    return f"[{', '.join(names)}]"


PATCHES = (
    Patch(CloudFormationResponse, "create_change_set", ("self",), create_change_set),
    Patch(CloudFormationResponse, "get_template_summary", ("self",), get_template_summary),
)


def relied_on() -> list[tuple[Any, str]]:
    backend = models.cloudformation_backends["123456789012"]["eu-west-1"]
    make_stack: Any = models.Stack
    stack = make_stack("id", "name", {}, {}, "123456789012", "eu-west-1")
    return [
        *((backend, name) for name in ("account_id", "change_sets", "partition", "region_name", "stacks")),
        (stack.resource_map, "_parsed_resources"),
        (s3_backends["123456789012"]["aws"], "buckets"),
        (kms_backends["123456789012"]["eu-west-1"], "keys"),
        *((stack, name) for name in ("tags", "template_dict")),
    ]
