"""A failure never ends the run, however hard it is to show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

WITH_OURS = "from tests.failure_reports import pytest_runtest_makereport as pytest_runtest_makereport\n"

#: The collector runs Python code, which any finalizer of an object in a cycle is, and it parses something.
COLLECTOR = f"""
import ast, gc, pytest

def parses(phase, info):
    ast.parse("1 + 1")

@pytest.fixture
def broken():
    before = gc.get_threshold()
    gc.callbacks.append(parses)
    gc.set_threshold(1)
    yield
    gc.callbacks.remove(parses)
    gc.set_threshold(*before)

def test_collector(broken):
    assert 6 == 7, "the collector's message"

many = {[*range(1000)]}
"""

PARSER = """
import ast, pytest

@pytest.fixture
def broken(monkeypatch):
    def parse(*args, **options):
        raise SystemError("AST constructor recursion depth mismatch")
    monkeypatch.setattr(ast, "parse", parse)

def test_parser(broken):
    assert 6 == 7, "the parser's message"
"""

SHY = """
class Shy(Exception):
    def __str__(self):
        raise ValueError("no")

    __repr__ = __str__

def test_shy():
    raise Shy("unknown")
"""

#: Call and teardown.
TWICE = """
import pytest

@pytest.fixture
def broken(monkeypatch):
    def fails(*args, **options):
        raise RecursionError("too deep")
    monkeypatch.setattr(pytest.ExceptionInfo, "getrepr", fails)
    print("what was printed")
    yield
    assert 6 == 7, "the second message"

def test_twice(broken):
    assert 6 == 7, "the first message"
"""


def said_by(folder: Path, conftest: str, **tests: str) -> str:
    """The output of a run of these, and a test that passes after each of them."""
    (folder / "conftest.py").write_text(conftest)
    for name, test in tests.items():
        (folder / f"test_{name}.py").write_text(f"{test}\n\ndef test_that_passes(): pass\n")
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:basilisp_test_runner", "-p", "no:cacheprovider"),
            *("-Werror", "-n2", "--dist=loadfile", "-c", os.devnull, "--rootdir", folder, folder),
        ],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    return run.stdout + run.stderr


@pytest.mark.slow
def test_what_cannot_be_shown_ends_no_run(tmp_path: Path) -> None:
    said = said_by(tmp_path, WITH_OURS, collector=COLLECTOR, parser=PARSER, shy=SHY, twice=TWICE)
    assert "INTERNALERROR" not in said and "crashed" not in said, said
    assert "4 failed, 4 passed" in said and "1 error in" in said, said
    for shown in (
        "AssertionError: the collector's message",
        "AssertionError: the parser's message",
        "test_shy.py::test_shy",
        "AssertionError: the first message",
        "AssertionError: the second message",
        "Its report could not be made",
        "RecursionError: too deep",
        "what was printed",
    ):
        assert shown in said, said


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python 3.12 collects no garbage while it parses")
def test_without_ours_the_run_would_end(tmp_path: Path) -> None:
    """So the test above shows something."""
    said = said_by(tmp_path, "", collector=COLLECTOR)
    assert "INTERNALERROR" in said and "AST constructor recursion depth mismatch" in said, said
