"""heronpy topologies run by the command line, in processes of their own, against plain counts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Each starts the command line, and most wait until their topology has been quiet for seconds.
pytestmark = pytest.mark.slow

HERE = Path(__file__).parent / "projects"
ROOT = Path(__file__).parents[3]
WORDS = ("storm", "heron", "spark", "storm", "flink")
LONG_ON_SPARK = ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long])]

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a file until it is idle; gives the statistics. What its bolts found is in ``tmp_path``."""

    def run(target: str, engine: str, *options: str) -> dict[str, Any]:
        figures = tmp_path / "figures"
        arguments = [
            "run",
            f"{HERE}/{target}",
            "--engine",
            engine,
            "-c",
            f"out={tmp_path}",
            "--json",
            str(figures),
        ]
        done = subprocess.run(
            [sys.executable, "-m", "stormspark.cli", *arguments, *(options or ("--until-idle", "3"))],
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", **_java()},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return dict(json.loads(figures.read_text()))

    return run


def _java() -> dict[str, str]:
    import os

    return {name: os.environ[name] for name in ("JAVA_HOME", "PATH", "HOME") if name in os.environ}


def found(folder: Path, component: str) -> list[dict[str, int]]:
    """What each task of a component has written."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob(f"{component}-*.json"))]


def words(n: int) -> Counter[str]:
    return Counter(WORDS[number % len(WORDS)] for number in range(n))


@pytest.mark.parametrize("engine", LONG_ON_SPARK)
def test_the_builders_style(run: Run, tmp_path: Path, engine: str) -> None:
    """A40, B21-B24, C20-C22, C43: a script with a main part; what a bolt fails comes again, and is counted once."""
    statistics = run("word_count_topology.py:words", engine)
    counts = found(tmp_path, "count")
    assert sum(map(Counter, counts), Counter()) == words(500)
    assert not set(counts[0]) & set(counts[-1]) or len(counts) == 1
    assert found(tmp_path, "last") == [dict(words(500))]
    assert statistics["topology"] == "words"


@pytest.mark.parametrize("engine", LONG_ON_SPARK)
def test_the_classs_style(run: Run, tmp_path: Path, engine: str) -> None:
    """A40-A42, D7-D10, D13: streams, output fields that are added, groupings; in two containers, which are workers."""
    run("streams_topology.py:Streams", engine)
    assert found(tmp_path, "both") == [{"same:same": 100, "words:odd": 25}] * 2
    assert found(tmp_path, "lowest") == [{"words:default": 100}]


@pytest.mark.parametrize("engine", LONG_ON_SPARK)
def test_state(run: Run, tmp_path: Path, engine: str) -> None:
    """B26, C42-C44: exact in spite of an exception."""
    run("stateful_topology.py", engine)
    assert (tmp_path / "raised").exists()
    assert sum(map(Counter, found(tmp_path, "count")), Counter()) == words(300)


@pytest.mark.spark
@pytest.mark.long
def test_state_outlives_the_topology(run: Run, tmp_path: Path) -> None:
    """C44: what is run again with its checkpoint goes on where it stopped; the command line's word count wins (A44)."""
    (tmp_path / "raised").touch()
    for n in (300, 500):
        run(
            "stateful_topology.py:stateful",
            "spark",
            *("--until-idle", "3", "--checkpoint", f"{tmp_path}/checkpoint", "-c", f"words={n}"),
        )
        assert sum(map(Counter, found(tmp_path, "count")), Counter()) == words(n)


def test_without_a_main_part(run: Run, tmp_path: Path) -> None:
    """A40, C22: under an older name of heronpy, with an argument more; windows by the clock."""
    run("windows_topology.py", "local", "--seconds", "4", "--arg", "70")
    (sizes,) = found(tmp_path, "sizes")
    assert sizes["tuples"] == 70 and sizes["windows"] >= 2
