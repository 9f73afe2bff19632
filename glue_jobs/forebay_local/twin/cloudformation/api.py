"""Properties of a template as the API takes them.

CloudFormation takes a number or a truth as text as well, and text as a number; botocore does not. The shapes that boto3
itself brings say what each value must be. Names that the API does not know stay, and boto3 refuses them: so a property that is
misspelled fails the deploy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def call(client: Any, method: str, properties: Mapping[str, Any]) -> Any:
    """Do it, with what it takes."""
    operation = client.meta.method_to_api_mapping[method]
    shape = client.meta.service_model.operation_model(operation).input_shape
    return getattr(client, method)(**_of(shape, dict(properties)))


def _of(shape: Any, value: Any) -> Any:
    kind = getattr(shape, "type_name", "")
    if kind == "structure" and isinstance(value, Mapping):
        return {name: _of(shape.members.get(name), of) for name, of in value.items()}
    if kind == "map" and isinstance(value, Mapping):
        return {name: _of(shape.value, of) for name, of in value.items()}
    if kind == "list" and isinstance(value, list):
        return [_of(shape.member, of) for of in value]
    if kind in ("integer", "long") and isinstance(value, str):
        return int(value)
    if kind in ("float", "double") and isinstance(value, str):
        return float(value)
    if kind == "boolean" and isinstance(value, str):
        return value.lower() == "true"
    if kind == "string" and isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return value
