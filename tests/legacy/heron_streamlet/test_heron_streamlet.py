"""Files of heronpy's streamlets, run by ``stormspark run`` as they are."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.legacy.heron_streamlet.files import JOIN, RAISES, WORD_COUNT
from tests.whole_lines import whole_lines

# Each starts the command line, and most wait until their topology has been quiet for seconds.
pytestmark = pytest.mark.slow

Stormspark = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).parents[3]
EXAMPLES = os.environ.get("HERON_EXAMPLES")

engines = pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
#: The conformance cases run streamlets on Spark, and tests/legacy/streamparse the command line.
long_on_spark = pytest.mark.parametrize(
    "engine", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long])]
)


@pytest.fixture
def stormspark(tmp_path: Path) -> Stormspark:
    """The command line, in a process and a folder of its own."""

    def run(
        *arguments: str, until: Callable[[], object] | None = None, timeout: float = 300.0
    ) -> subprocess.CompletedProcess[str]:
        """With ``until``, stop it gracefully once that is true."""
        command = [sys.executable, "-m", "stormspark.cli", *arguments]
        with (tmp_path / "stdout").open("w") as stdout, (tmp_path / "stderr").open("w") as stderr:
            process = subprocess.Popen(
                command,
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=stdout,
                stderr=stderr,
            )
            try:
                deadline = time.monotonic() + timeout
                while until is not None and process.poll() is None and not until():
                    assert time.monotonic() < deadline, (tmp_path / "stderr").read_text()
                    time.sleep(0.2)
                if until is not None and process.poll() is None:
                    process.send_signal(signal.SIGINT)
                process.wait(timeout)
            finally:
                process.kill()
                process.wait()
        texts = [(tmp_path / name).read_text() for name in ("stdout", "stderr")]
        return subprocess.CompletedProcess(command, process.returncode, *texts)

    return run


def logged(folder: Path, text: str) -> int:
    """How many lines with ``text`` there are in the logs of tasks."""
    lines = (line for file in folder.rglob("*") if file.is_file() for line in file.read_text().splitlines())
    return sum(text in line for line in lines)


def figures(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout)["components"])


@long_on_spark
def test_a_word_count_is_right(stormspark: Stormspark, tmp_path: Path, engine: str) -> None:
    """G24: a generator and functions of the file, lambdas that use its arguments, windows, every setting of Config."""
    (tmp_path / "word_count.py").write_text(WORD_COUNT)
    out = tmp_path / "counts"
    done = stormspark(
        "run",
        "word_count.py:words",
        "--arg",
        str(out),
        "--engine",
        engine,
        "--until-idle",
        "1.5",
        "--json",
        "-",
    )
    told = figures(done)
    assert told["flatmap-1"]["executed"] == 100 and told["log-1"]["executed"] > 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    counts: Counter[str] = Counter()
    for word, start, end, count in lines:
        assert end - start == 1
        counts[word] += count
    assert counts == {"storm": 100, "and": 100, "spark": 50, "heron": 50}


@long_on_spark
def test_joins_of_sources_that_go_on_for_ever(stormspark: Stormspark, tmp_path: Path, engine: str) -> None:
    """G24: mock sources, an outer join, a union, a reduction that begins with None; at most once, as without a word."""
    (tmp_path / "join.py").write_text(JOIN)
    out = tmp_path / "joined"
    expected = {"apple 6", "pear 0"}

    def joined() -> set[str]:
        return set(whole_lines(out)) if out.exists() else set()

    done = stormspark(
        "run",
        "join.py",
        "--arg",
        str(out),
        "--engine",
        engine,
        "--json",
        "-",
        until=lambda: expected <= joined(),
    )
    told = figures(done)
    assert told["reducebywindow-1"]["emitted"] > 0
    assert told["generator-1"]["acked"] == 0
    # The first window may be over before an order has come.
    assert expected <= joined() <= {*expected, "apple 0"}


def test_an_error_has_the_line_of_the_file(stormspark: Stormspark, tmp_path: Path) -> None:
    """An error in a user's function names the stage, the line of the user's file and the element (G24, W22)."""
    file = tmp_path / "raises.py"
    file.write_text(RAISES)
    line = RAISES.splitlines().index("    builder.new_source(lambda: 3).map(lambda number: number / 0)") + 1
    done = stormspark("run", "raises.py", "--engine", "local", "--until-idle", "1")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert f"in stage 'map-1', map at {file}:{line}, of 3" in done.stderr


def test_a_plan_shows_the_stages(stormspark: Stormspark, tmp_path: Path) -> None:
    """G24: under their names, with the workers of set_num_containers."""
    (tmp_path / "word_count.py").write_text(WORD_COUNT)
    done = stormspark("explain", "word_count.py:words", "--arg", "out")
    assert done.returncode == 0, done.stderr
    assert "6 components, 12 tasks, 2 workers" in done.stdout
    for stage in ("generator-1", "flatmap-1", "map-1", "reducebykeyandwindow-1", "write", "log-1"):
        assert stage in done.stdout


# -- the original's own examples -------------------------------------------------------------------------------

original = pytest.mark.skipif(
    EXAMPLES is None, reason="HERON_EXAMPLES names no checkout of apache/incubator-heron"
)


def example(name: str) -> str:
    assert EXAMPLES is not None
    return str(Path(EXAMPLES) / "examples" / "src" / "python" / f"{name}.py")


@original
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("word_count_streamlet", "(KeyedWindow {key: lamb, window: Window {start_time: "),
        ("join_streamlet_topology", "(KeyedWindow {key: key1, window: Window {start_time: "),
    ],
)
@engines
def test_the_originals_examples_run(
    stormspark: Stormspark, tmp_path: Path, engine: str, name: str, text: str
) -> None:
    """G24: examples of Heron's, as they are, until their logs have three windows' results."""
    logs = tmp_path / "logs"
    options = ("--engine", engine, "-c", f"stormspark.log.dir={logs}", "--json", "-")
    if engine == "local":  # which has no log files
        told = figures(stormspark("run", example(name), *options, "--seconds", "10"))
    else:
        told = figures(stormspark("run", example(name), *options, until=lambda: logged(logs, text) >= 3))
    assert told["log-1"]["executed"] >= 3
    if "join" in name:
        assert told["generator-1"]["emitted"] > 1 and told["generator-2"]["emitted"] > 1
    else:
        assert told["map-1"]["executed"] == told["flatmap-1"]["emitted"] > 1000


@original
def test_the_originals_example_of_pulsar_is_older_than_its_own_library(stormspark: Stormspark) -> None:
    """G24: it imports what heronpy does not have any more; the error says so, with its line."""
    done = stormspark("run", example("pulsar_word_count_streamlet"), "--engine", "local")
    assert done.returncode == 2
    assert (
        "cannot import name 'TimeWindow'" in done.stderr and "pulsar_word_count_streamlet.py:" in done.stderr
    )
