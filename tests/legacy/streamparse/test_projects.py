"""Projects laid out as streamparse has them, run by ``stormspark run`` as they are."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.legacy.streamparse.running import LONG_ON_SPARK, PROJECTS, command, run

# Each starts the command line, and most wait until their topology has been quiet for seconds.
pytestmark = pytest.mark.slow

WORKSHOP = PROJECTS / "workshop" / "topologies"
WORD_COUNT = PROJECTS / "word_count" / "topologies" / "wordcount.py"

long_on_spark = pytest.mark.parametrize("engine", LONG_ON_SPARK)


def poem() -> list[str]:
    text = (PROJECTS / "word_count" / "src" / "poem.py").read_text()
    return re.findall(r'"([^"]+)"', text)


@pytest.mark.parametrize(
    ("engine", "environment", "workers", "split"),
    [
        ("local", "prod", 2, 3),
        ("local", "beta", 1, 1),
        pytest.param("spark", "prod", 2, 3, marks=pytest.mark.spark),
    ],
)
def test_word_count(engine: str, environment: str, workers: int, split: int, tmp_path: Path) -> None:
    """A30, A37, A39, C19, W8, W12: one command runs a project; its environment says workers, tasks and options.

    The topology's own config wins over the environment's options. What tasks print and log is in their logs.
    """
    done = run(WORD_COUNT, engine, tmp_path, "--environment", environment)
    counts: dict[str, int] = defaultdict(int)
    for word, count in done.lines():
        counts[word] = max(counts[word], int(count))
    shout = environment == "prod"
    words = [word.upper() if shout else word for line in poem() for word in line.split(" ")]
    assert counts == Counter(words * 3)
    assert done.figures["topology"] == "wordcount"
    assert done.figures["components"]["split_bolt"]["tasks"] == split
    assert done.figures["components"]["line_spout"]["acked"] == 3 * len(poem())
    (told,) = [line for line in done.told.splitlines() if "config.json" in line]
    assert "virtualenv" in told
    if engine == "spark":
        logs = {file.name: file.read_text() for file in (tmp_path / "logs").rglob("*.log")}
        splits = "".join(text for name, text in logs.items() if name.startswith("split_bolt"))
        counting = "".join(text for name, text in logs.items() if name.startswith("count_bolt"))
        assert splits.count("splitting one fish two fish") == 3
        assert "pystorm.component.count_bolt: FISH: counted [10]" in counting
    else:
        plan = command("explain", WORD_COUNT, "-e", environment, "--format", "text").stdout
        assert f"{workers} worker" in plan.splitlines()[0]


def test_a_reliable_spout_replays(tmp_path: Path) -> None:
    """B18, C14: what fails once comes again, and then everything is acked, once."""
    done = run(WORKSHOP / "replays.py", "local", tmp_path)
    assert Counter(n for (n,) in done.notes("collect")) == Counter(range(30))
    told = Counter(map(tuple, done.notes("numbers")))
    failed = {("fail", n): 1 for n in range(0, 30, 3)}
    assert told == Counter({("ack", n): 1 for n in range(30)}) + Counter(failed)
    assert done.figures["components"]["picky"]["restarts"] == 0


def test_batches(tmp_path: Path) -> None:
    """C17, C18: batches between ticks, by key, and batches by time."""
    done = run(WORKSHOP / "batches.py", "local", tmp_path)
    assert Counter(n for rest, numbers in done.notes("collect") for n in numbers) == Counter(range(30))
    assert all(n % 2 == rest for rest, numbers in done.notes("collect") for n in numbers)
    assert Counter(n for (numbers,) in done.notes("timed") for n in numbers) == Counter(range(30))


@long_on_spark
def test_streams(engine: str, tmp_path: Path) -> None:
    """A33, A34, A35, C15: named and direct streams, all groupings, streams by hand, ticks."""
    done = run(WORKSHOP / "streams.py", engine, tmp_path, "--workers", 2)
    everywhere = done.notes("everywhere")
    assert Counter(n for _, n, _ in everywhere) == Counter(list(range(0, 20, 2)) * 3)
    assert {stream for _, _, stream in everywhere} == {"even"}
    odd = {n: task for task, n, _ in done.notes("odd_bolt")}
    assert sorted(odd) == list(range(1, 20, 2))
    first = min(odd.values())
    assert all(task == first + n // 2 % 2 for n, task in odd.items())
    told = Counter(kind for (kind,) in done.notes("ticker"))
    assert told["tuple"] == 10 and told["tick"] >= 1


def test_several_topologies_in_one_file(tmp_path: Path) -> None:
    """A37: the first one runs, and it is said that there are others; the second one runs by its name."""
    done = run(WORKSHOP / "pair.py", "local", tmp_path)
    assert done.figures["topology"] == "pair"
    assert "pair.py:Second" in done.told
    assert len(done.notes("first")) == 30
    done = run(f"{WORKSHOP / 'pair.py'}:Second", "local", tmp_path)
    assert done.figures["topology"] == "Second"
    assert len(done.notes("second")) == 30


@long_on_spark
def test_a_shell_bolt(engine: str, tmp_path: Path) -> None:
    """A32: a command runs in the project's src, and speaks the multilang protocol."""
    done = run(WORKSHOP / "shell.py", engine, tmp_path)
    assert Counter(n for (n,) in done.notes("collect")) == Counter(range(0, 60, 2))


def refused(*arguments: object) -> str:
    done = command("run", "--engine", "local", *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_module_that_is_missing() -> None:
    """W12: no virtualenv is made; an import that fails names the requirements file that asks for it, and the user's line."""
    told = refused(WORKSHOP / "missing.py")
    assert "No module named 'no_such'" in told
    assert f"{PROJECTS / 'workshop' / 'src' / 'needs.py'}:1" in told
    assert "common.txt requires no-such>=1.2" in told
    assert f"pip install -r {PROJECTS / 'workshop' / 'requirements'}" in told


def test_a_java_component_that_nobody_knows() -> None:
    """A32: the class is named, and what to do, with the line of its spec."""
    told = refused(WORKSHOP / "java.py")
    assert re.search(r"java\.py:\d+: spout 'words'", told)
    assert "com.acme.WordSpout" in told
    assert "native(" in told and "flux_classes.py" in told


def test_environments_that_are_not_there() -> None:
    """A39: with several environments one has to be chosen; one that is not there is refused with those that are."""
    assert "'prod', 'beta'" in refused(WORD_COUNT)
    assert "no environment 'staging'; there are 'prod', 'beta'" in refused(WORD_COUNT, "-e", "staging")


@pytest.mark.parametrize(
    "engine", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long])]
)
def test_a_topology_in_clojure(engine: str, tmp_path: Path) -> None:
    """A37, A39, C17: a project of streamparse 1 runs as it is, found by its folder and a name."""
    pytest.importorskip("basilisp")
    done = run(PROJECTS / "early", engine, tmp_path, "--name", "shop-orders")
    assert done.figures["topology"] == "shop-orders"
    assert done.figures["components"]["sums"]["tasks"] == 3
    assert done.figures["components"]["orders"]["acked"] == 70
    highest: dict[str, int] = defaultdict(int)
    for customer, total in done.notes("sums"):
        highest[customer] = max(highest[customer], total)
    assert highest == {"ann": 570, "bob": 590, "cat": 610}
    assert sorted(n for (amounts,) in done.notes("batches") for n in amounts) == list(range(50, 60))
    assert "several topologies, the last one, shop-orders, runs" in done.told


def test_a_draft_in_python_plans_like_its_clojure(tmp_path: Path) -> None:
    """A30: `stormspark port` writes the topology in Python."""
    pytest.importorskip("basilisp")
    project = tmp_path / "early"
    shutil.copytree(PROJECTS / "early", project)
    done = command("port", project, "--out", tmp_path / "out", "--import", "--json")
    assert done.returncode == 0, done.stderr
    found = {one["name"]: one for one in json.loads(done.stdout)["topologies"]}
    assert {name: one["skeleton"] for name, one in found.items()} == {
        "replays": "replays.py",
        "shop-orders": "shop_orders.py",
    }
    for one in found.values():
        assert not [each for each in one["statements"] if each["kind"] in ("change", "unread")]
    shutil.copy(tmp_path / "out" / "shop_orders.py", project / "topologies")
    drafted = command("explain", project / "topologies" / "shop_orders.py", "--format", "text").stdout
    original = command("explain", f"{project / 'topologies' / 'shop-orders.clj'}", "--format", "text").stdout
    # A stream without fields, which a component in Clojure may have, is none in Python.
    original = "".join(line for line in original.splitlines(keepends=True) if "emits default()" not in line)
    assert drafted.replace("shop_orders", "shop-orders", 1) == original
