"""The matrix of versions: what it installs, and what it counts as good."""

from __future__ import annotations

import doctest
import tomllib
from pathlib import Path

import pytest

from tools import matrix
from tools.matrix import ROWS, Row, Run, requirements

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]


def test_the_examples_of_the_docstrings() -> None:
    assert doctest.testmod(matrix).failed == 0


def test_each_row_has_its_own_name() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_row_installs_its_versions_and_what_the_tests_need(row: Row) -> None:
    wanted = requirements(row, PROJECT)
    names = [one.split("=")[0].split(">")[0].split("[")[0].strip() for one in wanted]
    assert len(names) == len(set(names))
    assert {"pyspark", "pandas", "pyarrow", "pytest", "hypothesis"} <= set(names)
    assert not {"ruff", "mypy", "stormspark"} & set(names)
    assert ("delta-spark" in names) == bool(row.delta)


def test_a_row_that_could_not_begin_is_good_only_if_there_is_no_such_python() -> None:
    assert Run(ROWS[0], "spark", why_not="no Python 3.14 here").is_good
    assert not Run(ROWS[0], "spark", failed=1, why_not="not installed").is_good
    assert not Run(ROWS[0], "spark").is_good
    assert Run(ROWS[0], "spark", passed=1).is_good
