"""The cases that `make test` runs on Spark are there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conformance.conftest import ON_SPARK

CONFORMANCE = Path(__file__).parents[1] / "conformance"


def test_every_case_that_is_named_is_there() -> None:
    """A case with another name would run on Spark in `make soak` only, without a word."""
    found = {
        path.name: set(re.findall(r"^def (test_\w+)\(", path.read_text(), re.MULTILINE))
        for path in CONFORMANCE.glob("test_*.py")
    }
    assert [
        f"{file}::{case}" for file, cases in ON_SPARK.items() for case in cases - found.get(file, set())
    ] == []
