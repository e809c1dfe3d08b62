"""How soon what a spout emits reaches the last of three bolts, if the spout sleeps in each ``next_tuple``.

    python -m benchmarks.arrival [--engine spark] [--front-end multilang] [--sleep 5] [--seconds 30] [--asks reads]

The topologies are those of ``tests/legacy/polling``: two spouts and three bolts one after the other, in one worker, written for
streamparse, for heronpy, and as children that use Storm's ``storm.py``. The command line runs each of them for so many seconds
and two sleeps more. Each option may be repeated; without any of them, all front-ends and engines run, with sleeps of 0.2, 1, 5
and 6 s. ``--asks`` says how the spouts ask: ``sleeps``, ``reads`` (they wait for a pipe) or ``for_ever`` (``next_tuple`` never
returns).

The delay is the time from just before the emit to the call of the last bolt. *first* is the longest delay among the
tuples that were emitted in the first five seconds, counted from the first emit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from tests.legacy.polling import PROJECTS, TARGETS
from tests.legacy.streamparse.running import run

_ENGINES = ("local", "spark")
_SLEEPS = (0.2, 1.0, 5.0, 6.0)
_FIRST_SECS = 5.0
_HEAD = "| front-end | sleep s | engine | tuples | min | median | p99 | max | first |"


def measure(front_end: str, asks: str, engine: str, sleep: float, seconds: float) -> list[dict[str, Any]]:
    """What has come to the last bolt: of each tuple, when it was emitted (``at``), and its delay (``took``), in seconds."""
    target = PROJECTS / TARGETS[front_end].format(asks)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = ("-c", f"test.secs={sleep}", "-c", "topology.workers=1")
        length = ("--seconds", seconds + 2 * sleep)
        run(target, engine, folder, *settings, *length, path=PROJECTS / "shared")
        return [json.loads(line) for file in folder.glob("came-*") for line in file.read_text().splitlines()]


def line_of(front_end: str, engine: str, sleep: float, came: list[dict[str, Any]]) -> str:
    """The line of the table for what has come; delays in milliseconds."""
    told = f"| {front_end} | {sleep:g} | {engine} | {len(came)} |"
    if not came:
        return f"{told} - | - | - | - | - |"
    took = sorted(one["took"] for one in came)
    began = min(one["at"] for one in came)
    figures = (
        took[0],
        statistics.median(took),
        took[int(0.99 * (len(took) - 1))],
        took[-1],
        max(one["took"] for one in came if one["at"] < began + _FIRST_SECS),
    )
    return f"{told} {' | '.join(f'{1000 * figure:.0f}' for figure in figures)} |"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--front-end", choices=TARGETS, action="append")
    parser.add_argument("--engine", choices=_ENGINES, action="append")
    parser.add_argument("--sleep", type=float, action="append")
    parser.add_argument("--asks", choices=("sleeps", "reads", "for_ever"), default="sleeps")
    parser.add_argument("--seconds", type=float, default=30)
    args = parser.parse_args()
    print(f"delays in ms\n\n{_HEAD}\n|{' --- |' * (_HEAD.count('|') - 1)}")
    for front_end in args.front_end or TARGETS:
        for sleep in args.sleep or _SLEEPS:
            for engine in args.engine or _ENGINES:
                came = measure(front_end, args.asks, engine, sleep, args.seconds)
                print(line_of(front_end, engine, sleep, came), flush=True)


if __name__ == "__main__":
    main()
