"""AWS prices with a date, a region and a source, from `prices.toml` or from your own file. Pure.

In: a TOML file. Out: `Prices`. `InvalidConfiguration` names everything that is wrong with the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from forebay.errors import InvalidConfiguration, Problem

PRICES = Path(__file__).with_name("prices.toml")


@dataclass(frozen=True)
class Prices:
    date: date
    region: str
    source: str
    usd: Mapping[str, float]

    def dpu_hour(self, *, is_on_emr: bool) -> float:
        """The price of an hour of 4 vCPUs and 16 GB."""
        if is_on_emr:
            return 4 * self.usd["emr_vcpu_hour"] + 16 * self.usd["emr_gb_hour"]
        return self.usd["glue_dpu_hour"]


def read_prices(file: Path = PRICES, parts: Collection[str] | None = None) -> Prices:
    """`parts`: exactly these must have a price; without it, any may."""
    try:
        given = tomllib.loads(file.read_text())
    except (OSError, tomllib.TOMLDecodeError) as why:
        raise InvalidConfiguration.one(str(file), f"cannot be read: {why}") from why
    usd: Any = given.get("usd", {})
    wanted = set(usd if parts is None else parts)
    problems = [Problem(f"{file}: usd.{name}", "has no price") for name in wanted - usd.keys()]
    problems += [Problem(f"{file}: usd.{name}", "is unknown") for name in usd.keys() - wanted]
    problems += [
        Problem(f"{file}: usd.{name}", f"must be a number; got {price!r}")
        for name, price in usd.items()
        if isinstance(price, bool) or not isinstance(price, int | float)
    ]
    kinds = {"date": date, "region": str, "source": str}
    problems += [
        Problem(f"{file}: {name}", f"must be a {kind.__name__}; got {given.get(name)!r}")
        for name, kind in kinds.items()
        if not isinstance(given.get(name), kind)
    ]
    if problems:
        raise InvalidConfiguration(sorted(problems, key=str))
    return Prices(given["date"], given["region"], given["source"], usd)
