"""``python -m tests.schedules.interleaved [FAMILY] [--seconds S | --runs N] [--first SEED]``: search, or run one seed again.

``--planted``: how many runs it takes to find each race of `tests.schedules.interleaved.planted`, with new seeds.
``--opcodes``: a thread may be interrupted at each instruction, as it may be only without the interpreter's lock.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import count

from tests.schedules.interleaved.planted import PLANTED, RARE, planted
from tests.schedules.interleaved.run import FAMILIES, find, run


def main() -> int:
    """Search until the time is over, or so many runs are made; 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.schedules.interleaved", description=__doc__)
    parser.add_argument("family", nargs="?", choices=FAMILIES)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--first", "--seed", type=int)
    parser.add_argument("--most", type=int, default=3, help="end after so many that were found")
    parser.add_argument("--opcodes", action="store_true", help="interrupt threads at each instruction")
    parser.add_argument("--planted", action="store_true", help="find the planted races")
    asked = parser.parse_args()
    first = asked.first if asked.first is not None else time.time_ns() // 1000
    if asked.planted:
        return _find_planted(first, asked.runs or 5000)
    families = [asked.family] if asked.family else FAMILIES
    began, tried, steps, found = time.monotonic(), 0, 0, 0
    for seed in count(first):
        if seed - first >= asked.runs if asked.runs is not None else time.monotonic() - began > asked.seconds:
            break
        for family in families:
            result = run(family, seed, opcodes=asked.opcodes)
            tried, steps = tried + 1, steps + result.steps
            if result.rule:
                found += 1
                print(result, flush=True)
        if found >= asked.most:
            break
    took = time.monotonic() - began
    print(
        f"{tried} runs from seed {first} on, {tried / took:.1f} per second, {steps // max(1, tried)} steps each: {found} found"
    )
    return found > 0


def _find_planted(first: int, most: int) -> int:
    missed = 0
    for name, (family, _) in {**PLANTED, **RARE}.items():
        with planted(name):
            result = find(family, range(first, first + most))
        missed += result is None and name in PLANTED
        how = (
            f"not found in {most} runs"
            if result is None
            else f"{result.seed - first + 1} runs: {result.rule}"
        )
        print(f"{name}: {how}", flush=True)
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
