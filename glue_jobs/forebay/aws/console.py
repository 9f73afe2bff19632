"""The address of AWS's console in a region. Each partition has its own."""

from __future__ import annotations

USUAL = "console.aws.amazon.com"
ELSEWHERE = {
    "cn-": "console.amazonaws.cn",
    "us-gov-": "console.amazonaws-us-gov.com",
    "eusc-": "console.amazonaws-eusc.eu",
}
"""By how names of the partition's regions begin."""


def console_domain(region: str) -> str:
    """After the region's name and a dot, it leads to the console there."""
    return next((domain for begin, domain in ELSEWHERE.items() if region.startswith(begin)), USUAL)
