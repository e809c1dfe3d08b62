"""``python -m tests.schedules [FAMILY] [--seconds S | --seeds N] [--first SEED] [--schedule JSON]``: search, or run one again.

``--planted``: how many schedules it takes to find each defect of `tests.schedules.planted`, with new seeds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from itertools import count

from tests.schedules.planted import PLANTED, planted
from tests.schedules.schedule import Schedule
from tests.schedules.search import FAMILIES, simplest, try_schedule


def main() -> int:
    """Search until the time is over or so many seeds are tried; 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.schedules", description=__doc__)
    parser.add_argument("family", nargs="?", choices=sorted(FAMILIES))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--first", type=int)
    parser.add_argument("--most", type=int, default=3, help="end after so many that were found")
    parser.add_argument("--schedule", help="a schedule that was printed: run it again")
    parser.add_argument("--planted", action="store_true", help="find the planted defects")
    asked = parser.parse_args()
    families = [asked.family] if asked.family else sorted(FAMILIES)
    if asked.schedule is not None:
        again = try_schedule(families[0], Schedule(0, json.loads(asked.schedule)))
        print("nothing is broken" if again is None else again)
        return again is not None
    first = asked.first if asked.first is not None else time.time_ns() // 1000
    if asked.planted:
        return _find_planted(first, asked.seeds or 10_000)
    began, tried, found = time.monotonic(), 0, 0
    for seed in count(first):
        if asked.seeds is not None and seed - first >= asked.seeds:
            break
        if asked.seeds is None and time.monotonic() - began > asked.seconds:
            break
        for family in families:
            tried += 1
            broken = try_schedule(family, Schedule(seed), seed)
            if broken is not None:
                found += 1
                print(simplest(broken), flush=True)
        if found >= asked.most:
            break
    print(f"schedules tried: {tried}, found: {found} ({time.monotonic() - began:.0f} s, from seed {first})")
    return found > 0


def _find_planted(first: int, most: int) -> int:
    """Tell how many schedules each planted defect takes; 1 if one was not found."""
    missed = 0
    for defect, (family, rule, _) in sorted(PLANTED.items()):
        with planted(defect):
            for tried in range(1, most + 1):
                seed = first + tried - 1
                found = try_schedule(family, Schedule(seed), seed)
                if found is not None and found.rule.startswith(rule):
                    print(f"{defect}: {tried} schedules, {found.rule}", flush=True)
                    break
            else:
                missed += 1
                print(f"{defect}: not found in {most} schedules", flush=True)
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
