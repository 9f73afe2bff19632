"""Spark's analysis of declared SQL: its refusals, and expressions whose answer would change."""

from __future__ import annotations

from typing import Any

from forebay.declared_sql.references import nodes_of

FORBIDDEN = {
    **dict.fromkeys(("CallMethodViaReflection", "TryReflect"), "calls Java"),
    **dict.fromkeys(("ScalarSubquery", "Exists", "ListQuery", "InSubquery"), "reads other tables"),
    **dict.fromkeys(
        ("CurrentTimestamp", "CurrentDate", "Now", "LocalTimestamp", "CurrentTime"), "depends on the clock"
    ),
    **dict.fromkeys(("First", "Last", "AnyValue", "CollectList", "ListAgg"), "depends on the order of rows"),
    **dict.fromkeys(("InputFileName", "CurrentUser", "SparkVersion"), "depends on where it runs"),
}


def refusals() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JJavaError


def message_of(refused: Exception) -> str:
    java = getattr(refused, "java_exception", None)
    return str(refused if java is None else java.toString()).splitlines()[0]


def forbidden_in(expression: Any) -> list[str]:
    """Why a repetition of an analyzed expression would have another result; empty where it would not."""
    kinds = {str(node.getClass().getSimpleName()) for node in nodes_of(expression)}
    forbidden = sorted({FORBIDDEN[kind] for kind in kinds & FORBIDDEN.keys()})
    return forbidden or ([] if expression.deterministic() else ["gives a different answer each time"])
