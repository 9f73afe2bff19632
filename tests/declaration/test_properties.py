"""Properties of a table are declared, where every writer and reader here keeps to them."""

from __future__ import annotations

import pytest

from forebay.declaration.loading import parse_service
from forebay.errors import InvalidConfiguration

TABLE = 'name = "studio"\n[[tables]]\nname = "a"\n'


def test_a_property_that_all_keep_to_is_declared_as_are_names_of_your_own() -> None:
    given = '"delta.enableChangeDataFeed" = "true", "delta.checkpointInterval" = "50", "team.owner" = "growth"'
    [table] = parse_service({"service.toml": f"{TABLE}properties = {{ {given} }}"}).tables
    assert table.properties == {
        "delta.enableChangeDataFeed": "true",
        "delta.checkpointInterval": "50",
        "team.owner": "growth",
    }


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("delta.enableChangeDataFeed", "yes", r'must be "true" or "false"; got "yes"'),
        ("delta.checkpointInterval", "0", "must be a number of commits"),
        ("delta.enablechangedatafeed", "true", "is spelled delta.enableChangeDataFeed"),
        ("enableChangeDataFeed", "true", r"is spelled delta\.enableChangeDataFeed"),
        ("checkpointinterval", "50", r"is spelled delta\.checkpointInterval"),
        ("delta.appendOnly", "true", "would prevent replacing"),
        ("delta.logRetentionDuration", "interval 1 day", "follows from time_travel_days"),
        ("delta.setTransactionRetentionDuration", "interval 1 day", "load them twice"),
        ("delta.enableTypeWidening", "true", "type_widening = true"),
        ("delta.enableDeletionVectors", "true", "only version 1 of the protocol; allowed: delta.enableChange"),
        ("delta.feature.rowTracking", "supported", "is not known to work with"),
        ("forebay.derivedFrom", "b", "a name reserved for forebay"),
        ("team owner", "x", "must be letters, digits"),
        ("note", "x" * 5000, "has 5000 characters"),
    ],
)
def test_any_other_property_is_refused_with_the_reason(name: str, value: str, says: str) -> None:
    with pytest.raises(InvalidConfiguration, match=says) as refused:
        parse_service({"service.toml": f'{TABLE}properties = {{ "{name}" = "{value}" }}'})
    assert f"properties: {name} " in str(refused.value)
