"""streamparse's own examples and its quickstart project, copied, not changed. STREAMPARSE_EXAMPLES names a checkout of it.

What they need besides is put beside them: a stand-in for the ``redis`` package, whose counts go to a file. Of ``kafka-jvm`` only
its refusal can be tested: its spout is a class of its own in Java, and its bolt imports simplejson.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.legacy.streamparse.running import command, run

CHECKOUT = os.environ.get("STREAMPARSE_EXAMPLES")
pytestmark = pytest.mark.skipif(
    not CHECKOUT, reason="STREAMPARSE_EXAMPLES names no checkout of streamparse's repository"
)

REDIS = """
import os

class StrictRedis:
    def zincrby(self, key, word, amount):
        with open(os.environ["STAND_IN_REDIS"], "a") as file:
            file.write(f"{key} {word} {amount}\\n")
        return 1.0
"""


@pytest.fixture
def original(tmp_path: Path):
    def copy(folder: str) -> Path:
        assert CHECKOUT is not None
        return Path(
            shutil.copytree(
                Path(CHECKOUT, folder), tmp_path / "project", ignore=shutil.ignore_patterns("chef")
            )
        )

    return copy


@pytest.fixture
def redis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "stand-in"
    folder.mkdir()
    (folder / "redis.py").write_text(REDIS)
    monkeypatch.setenv("STAND_IN_REDIS", str(folder / "counts.txt"))
    return folder


def test_the_quickstart_project(original, tmp_path: Path) -> None:
    """A30, A37, W12: what ``sparse quickstart`` makes; its template of a config is JSON as it is."""
    project = original("streamparse/bootstrap/project")
    (project / "config.jinja2.json").rename(project / "config.json")
    done = run(project / "topologies" / "wordcount.py", "local", tmp_path, "--seconds", 2)
    components = done.figures["components"]
    assert components["count_bolt"]["executed"] > 1000
    assert components["count_bolt"]["tasks"] == 2
    assert components["count_bolt"]["errors"] == 0


def test_redis_in_memory(original, redis: Path, tmp_path: Path) -> None:
    """A30, A34: examples/redis, topologies/wordcount_mem.py, whose module imports redis."""
    project = original("examples/redis")
    topology = project / "topologies" / "wordcount_mem.py"
    refused = command("run", topology, "--engine", "local").stderr
    assert "wordcount_mem.txt requires redis==2.10.1" in refused
    done = run(topology, "local", tmp_path, "--seconds", 2, path=redis)
    assert done.figures["components"]["count_bolt"]["executed"] > 1000
    assert done.figures["components"]["count_bolt"]["errors"] == 0


def test_redis(original, redis: Path, tmp_path: Path) -> None:
    """A30, A35: examples/redis, topologies/wordcount_redis.py, against a stand-in for the database."""
    project = original("examples/redis")
    done = run(project / "topologies" / "wordcount_redis.py", "local", tmp_path, "--seconds", 2, path=redis)
    executed = done.figures["components"]["count_bolt"]["executed"]
    counted = Counter(tuple(line.split()) for line in (redis / "counts.txt").read_text().splitlines())
    assert sum(counted.values()) == executed > 100
    assert set(counted) == {
        ("words", word, "10" if word == "dog" else "1") for word in ("dog", "cat", "zebra", "elephant")
    }


def test_kafka_on_the_jvm(original, tmp_path: Path) -> None:
    """A32, W12: examples/kafka-jvm asks for simplejson, and then for a spout that is written in Java."""
    project = original("examples/kafka-jvm")
    topology = project / "topologies" / "pixelcount.py"
    stand_in = tmp_path / "stand-in"
    stand_in.mkdir()
    if importlib.util.find_spec("simplejson") is None:
        assert "pixelcount.txt requires simplejson" in command("run", topology, "--engine", "local").stderr
        (stand_in / "simplejson.py").write_text("from json import *\n")
    refused = command("run", topology, "--engine", "local", path=stand_in).stderr
    assert "pixelcount.spouts.PixelSpout" in refused and "'pixel-spout'" in refused
