"""Spouts that take their time in ``next_tuple``, as hand-written ones do (B1, B3): they sleep, wait for a consumer, or read.

Two such spouts and three bolts one after the other are in one worker. Nothing that was emitted is lost, also at a stop.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.legacy.streamparse.running import LONG_ON_SPARK, run

pytestmark = pytest.mark.slow

_TOPOLOGIES = Path(__file__).parent / "projects" / "streamparse" / "topologies"


def _sent(folder: Path) -> list[tuple[int, int]]:
    """The task and the number of each tuple that was to be emitted."""
    return [
        (int(file.stem.removeprefix("sent-")), json.loads(line)["number"])
        for file in folder.glob("sent-*.jsonl")
        for line in file.read_text().splitlines()
    ]


def _came(folder: Path) -> list[tuple[int, int]]:
    """The same of each tuple that has arrived at the last bolt."""
    (file,) = folder.glob("came-*.jsonl")
    return [(one["task"], one["number"]) for one in map(json.loads, file.read_text().splitlines())]


@pytest.mark.parametrize("engine", LONG_ON_SPARK)
@pytest.mark.parametrize("asks", ["sleeps", "reads", "for_ever"])
def test_what_it_emits_arrives_and_a_stop_loses_nothing(asks: str, engine: str, tmp_path: Path) -> None:
    seconds = 4 if engine == "local" else 20
    settings = ("-c", "test.secs=0.2", "-c", "topology.workers=1", "--seconds", seconds)
    ended = run(_TOPOLOGIES / f"{asks}.py", engine, tmp_path, *settings)
    emitted, arrived = _sent(tmp_path), _came(tmp_path)
    assert len(arrived) == len(set(arrived)) and set(arrived) <= set(emitted)
    # A call that never returns is ended where it emits next.
    cut_off = len(set(emitted) - set(arrived))
    assert cut_off <= (2 if asks == "for_ever" else 0), sorted(set(emitted) - set(arrived))
    by_task = Counter(task for task, _ in arrived)
    assert len(by_task) == 2 and 2 * min(by_task.values()) >= max(by_task.values()), by_task
    counts = ended.figures["components"]
    assert (counts["asks"]["acked"], counts["keeps"]["executed"]) == (len(arrived), len(arrived))
