"""Spouts that take their time in ``next_tuple``, as hand-written ones do (B1, B3): they sleep, wait for a consumer, or read.

Two such spouts and three bolts one after the other are in one worker, in each of the front-ends. Nothing that was emitted is
lost, also at a stop.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.legacy.polling import PROJECTS, TARGETS
from tests.legacy.streamparse.running import run

pytestmark = pytest.mark.slow

#: The programs of the children that are not Python.
_PROGRAMS = {"sleeps_in_ruby": "ruby", "sleeps_in_node": "node"}
_CASES = [
    ("streamparse", "sleeps"),
    ("streamparse", "reads"),
    ("streamparse", "for_ever"),
    ("heronpy", "sleeps"),
    ("multilang", "sleeps"),
    ("multilang", "sleeps_in_ruby"),
]
_OTHERS = [
    ("heronpy", "reads"),
    ("heronpy", "for_ever"),
    ("multilang", "reads"),
    ("multilang", "for_ever"),
    ("multilang", "sleeps_in_node"),
]
_LONG = pytest.mark.long
_ON_SPARK = [pytest.mark.spark, pytest.mark.long]


def _sent(folder: Path) -> list[tuple[int, int]]:
    """The task and the number of each tuple that was to be emitted."""
    return [
        (int(file.stem.removeprefix("sent-")), json.loads(line)["number"])
        for file in folder.glob("sent-*.jsonl")
        for line in file.read_text().splitlines()
    ]


def _came(folder: Path) -> list[tuple[int, int]]:
    """The same of each tuple that has arrived at the last bolt."""
    return [
        (one["task"], one["number"])
        for file in folder.glob("came-*.jsonl")
        for one in map(json.loads, file.read_text().splitlines())
    ]


def _shares(front_end: str, asks: str, engine: str, folder: Path, sleep: float, seconds: float) -> list[int]:
    """Run it for so long, and see that nothing is lost or comes twice. Returns how many tuples of each spout have arrived."""
    folder.mkdir()
    settings = ("-c", f"test.secs={sleep}", "-c", "topology.workers=1", "--seconds", seconds)
    target = PROJECTS / TARGETS[front_end].format(asks)
    ended = run(target, engine, folder, *settings, path=PROJECTS / "shared")
    emitted, arrived = _sent(folder), _came(folder)
    assert len(arrived) == len(set(arrived)) and set(arrived) <= set(emitted)
    # A call that never returns is ended where it emits next.
    cut_off = set(emitted) - set(arrived)
    assert len(cut_off) <= (2 if asks == "for_ever" else 0), sorted(cut_off)
    counts = ended.figures["components"]
    acked = sum(counts[spout]["acked"] for spout in ("asks", "asks_too") if spout in counts)
    assert (acked, counts["keeps"]["executed"]) == (len(arrived), len(arrived))
    return list(Counter(task for task, _ in arrived).values())


def _are_alike(shares: list[int]) -> bool:
    return len(shares) == 2 and 2 * min(shares) >= max(shares)


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=_ON_SPARK)])
@pytest.mark.parametrize(
    ("front_end", "asks", "sleep"),
    [
        *((*case, 0.2) for case in _CASES),
        *(pytest.param(*case, 0.2, marks=_LONG) for case in _OTHERS),
        *(pytest.param(front_end, "sleeps", s, marks=_LONG) for front_end in TARGETS for s in (1, 5, 6)),
    ],
)
def test_what_it_emits_arrives_and_a_stop_loses_nothing(
    front_end: str, asks: str, sleep: float, engine: str, tmp_path: Path
) -> None:
    if asks in _PROGRAMS and shutil.which(_PROGRAMS[asks]) is None:
        pytest.skip(f"no {_PROGRAMS[asks]} on the PATH")
    seconds = (4 if engine == "local" else 20) + 4 * int(sleep)
    # On a busy machine, one of the spouts may start later than the other.
    runs = (
        _shares(front_end, asks, engine, tmp_path / str(longer), sleep, longer * seconds)
        for longer in (1, 2, 4)
    )
    assert any(map(_are_alike, runs))
