"""What a batch's commit to the state table costs, against how much changed and how large the state is.

    python -m benchmarks.state_table [--keys 10000 1000000 10000000] [--changes 1000 10000] [--rounds 5] [--batches 40]

A table for each number of keys, of four tasks, is written and compacted. Then, in turn, so many batches on
each: the worker's file and the driver's commit (``commit_ms``, both on disk when they return), and as much
compaction and vacuum as fits into ``--budget`` seconds (``held_up_ms``: what a batch then waits; the most is
the longest step). Each round also plans and makes a restore of one task of each table. ``ratio`` is a round's
median commit over that of the smallest table in the same round, with as many changes. Prints one JSON line:
least, median and most over rounds or batches.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from stormspark.checkpoint.state_table import StateTable, TaskChanges, write_changes

_TASKS = 4
_VALUE = 50


def key(number: int) -> bytes:
    """Sixteen bytes in no order."""
    return b"%016x" % (number * 0x9E3779B97F4A7C15 % 2**64)


def changes(numbers: list[int], chance: random.Random) -> list[TaskChanges]:
    """New values of these keys, by task."""
    by_task = defaultdict(list)
    for number in numbers:
        by_task[number % _TASKS].append((key(number), chance.randbytes(_VALUE)))
    return [TaskChanges("count", task, items) for task, items in by_task.items()]


def batch(table: StateTable, changed: list[TaskChanges]) -> float:
    """One batch of one worker; seconds of its file and its commit."""
    txid = table.last_txid + 1
    began = time.perf_counter()
    table.commit(txid, [write_changes(table.location, changed, generation=0, txid=txid)])
    return time.perf_counter() - began


def filled(folder: Path, keys: int) -> StateTable:
    """A table with so many keys, compacted."""
    table = StateTable(folder / str(keys), vacuum_after_secs=5.0)
    table.open(0)
    chance, chunk = random.Random(keys), max(1, min(500_000, keys // 8))
    for begin in range(0, keys, chunk):
        batch(table, changes(list(range(begin, min(keys, begin + chunk))), chance))
    while table.compact(1.0):
        pass
    return table


def spread(values: list[float], digits: int = 2) -> list[float]:
    """Least, median, most."""
    return [round(value, digits) for value in (min(values), statistics.median(values), max(values))]


def main() -> None:
    """Measure in turn."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keys", type=int, nargs="+", default=[10_000, 1_000_000, 10_000_000])
    parser.add_argument("--changes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--budget", type=float, default=0.02, help="seconds of compaction after each batch")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="state-table-"))
    chance = random.Random(1)
    try:
        tables: dict[int, StateTable] = {}
        result: dict[int, dict[str, object]] = {}
        for keys in asked.keys:
            began = time.perf_counter()
            tables[keys] = filled(folder, keys)
            result[keys] = {"filled_secs": round(time.perf_counter() - began, 1)}
        commits: dict[tuple[int, int], list[float]] = defaultdict(list)
        medians: dict[tuple[int, int], list[float]] = defaultdict(list)
        held_up: dict[tuple[int, int], list[float]] = defaultdict(list)
        restores: dict[int, list[float]] = defaultdict(list)
        plans: dict[int, list[float]] = defaultdict(list)
        for _ in range(asked.rounds):
            for changed in asked.changes:
                for keys, table in tables.items():
                    took = []
                    for _ in range(asked.batches):
                        new = changes(chance.sample(range(keys), min(keys, changed)), chance)
                        took.append(batch(table, new) * 1000)
                        began = time.perf_counter()
                        table.compact(asked.budget)
                        table.vacuum(asked.budget / 4)
                        held_up[keys, changed].append((time.perf_counter() - began) * 1000)
                    commits[keys, changed] += took
                    medians[keys, changed].append(statistics.median(took))
            for keys, table in tables.items():
                began = time.perf_counter()
                plan = table.plan_restore("count", 1)
                plans[keys].append((time.perf_counter() - began) * 1000)
                began = time.perf_counter()
                rows = sum(found.num_rows for found in plan.batches())
                restores[keys].append(rows / (time.perf_counter() - began))
        for keys, table in tables.items():
            files = [path.stat().st_size for path in Path(table.location).glob("*/*.parquet")]
            result[keys] |= {
                "restored_rows_per_sec": [round(value) for value in spread(restores[keys], 0)],
                "plan_ms": spread(plans[keys]),
                "files": len(table.plan_restore(kind=None).files),
                "mb_on_disk": round(sum(files) / 1e6, 1),
            }
            for changed in asked.changes:
                base = medians[asked.keys[0], changed]
                ratios = [own / first for own, first in zip(medians[keys, changed], base, strict=True)]
                result[keys][f"{changed}_changes"] = {
                    "commit_ms": spread(commits[keys, changed]),
                    "ratio": spread(ratios),
                    "held_up_ms": spread(held_up[keys, changed]),
                }
        print(json.dumps({"benchmark": "state_table", "budget_ms": asked.budget * 1000, "keys": result}))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
