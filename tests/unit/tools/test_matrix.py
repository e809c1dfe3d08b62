"""The matrix of versions: what it installs, and what it counts as good."""

from __future__ import annotations

import doctest
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tools import matrix
from tools.matrix import ROWS, Row, Run, release, requirements

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


def test_ci_has_a_row_for_each_older_spark_on_whatever_python_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    older = {release(row) for row in ROWS} - {release(ROWS[-1])}
    own = "{}.{}".format(*sys.version_info)
    for pythons in ((), ("3.12",), ("3.12", "3.13")):
        monkeypatch.setattr(
            matrix, "python_for", lambda version, have=pythons: version if version in have else None
        )
        rows = matrix.rows_for_ci()
        assert {release(row) for row in rows} == older
        assert {row.python for row in rows} <= {own, *pythons}
        assert len({row.name for row in rows}) == len(rows)


def test_the_tests_of_ci_are_there() -> None:
    root = Path(__file__).parents[3]
    for named in (one for tests in matrix._CI.values() for one in tests):
        file, _, test = named.partition("::")
        assert f"def {test.partition('[')[0]}" in (root / file).read_text()
    assert re.search(r"^checks .*test-matrix-ci", (root / ".ci/run").read_text(), re.MULTILINE)


def test_what_pip_says_is_the_row_s_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A machine without a package index fails: nothing was tested there."""
    pip = tmp_path / "python"
    pip.write_text(
        "#!/bin/sh\necho 'WARNING: Retrying\nERROR: No matching distribution found for pyspark==4.0.*' >&2\nexit 1\n"
    )
    pip.chmod(0o755)
    monkeypatch.setattr(matrix, "python_for", lambda version: str(pip))
    assert matrix.main(["--environments", str(tmp_path / "kept"), "--ci", "--engine", "spark"]) == 1
    shown = capsys.readouterr()
    assert "Retrying" in shown.err
    assert (
        shown.out.count(
            "ERROR: No matching distribution found for pyspark==4.0.* (is a package index in reach"
        )
        == 2
    )


def test_a_row_that_could_not_begin_is_good_only_if_there_is_no_such_python() -> None:
    assert Run(ROWS[0], "spark", why_not="no Python 3.14 here").is_good
    assert not Run(ROWS[0], "spark", failed=1, why_not="not installed").is_good
    assert not Run(ROWS[0], "spark").is_good
    assert Run(ROWS[0], "spark", passed=1).is_good
