"""Measures what a small max spout pending costs over two workers, against another state of the code.

    python -m benchmarks.small_pending --against ../before [--case shuffle] [--pending 200] [--rounds 5] [--seconds 15]

Cases: ``wordcount`` is the acked word count (a shuffle, then a fields grouping), and ``shuffle`` is a spout and two bolts
behind shuffles, where no tree has to leave its worker. ``--against`` is a folder with the other state, as `git worktree add`
makes it. The two run in turn, because a shared machine is fast and slow by turns. Prints one JSON line per run, and one with
the ratios: trees per second and per CPU second, trees per round, and milliseconds per round.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

_CASES = ("wordcount", "shuffle")
#: A machine that has other things to do, too, may take minutes until a topology runs.
_FIRST_WORD_SECS = 600.0
_RATIOS = ("trees_per_s", "trees_per_cpu_s", "trees_per_round", "round_ms")


def _topology(case: str, workers: int) -> Any:
    from benchmarks.topologies import Items, Split, build
    from stormspark import TopologyBuilder

    if case == "wordcount":
        return build("wordcount_acked", (workers,) * 3)

    builder = TopologyBuilder()
    builder.set_spout("spout", Items(words=False, ids=True), workers)
    builder.set_bolt("split", Split(), workers).shuffle_grouping("spout")
    builder.set_bolt("count", Split(), workers).shuffle_grouping("split")
    return builder.create_topology("shuffle")


def run_one(
    case: str, workers: int, settings: dict[str, Any], seconds: float, warmup: float
) -> dict[str, Any]:
    """Measure the code that is imported, once."""
    import stormspark
    from benchmarks import word_count

    word_count._FIRST_WORD_SECS = _FIRST_WORD_SECS
    conf = {"topology.workers": workers, **settings}
    first, last = word_count.measure_on("spark", _topology(case, workers), conf, warmup, seconds)
    before, after = (mark.statistics.components["spout"] for mark in (first, last))
    trees, wall = after.acked - before.acked, last.at - first.at
    cpu = sum(last.cpu.values()) - sum(first.cpu.values())
    rounds = last.statistics.batches - first.statistics.batches
    held = (after.skipped_max_spout_ms - before.skipped_max_spout_ms) / after.tasks / wall / 1000
    return {
        "code": str(Path(stormspark.__file__).parents[1]),
        "case": case,
        "trees": trees,
        "rounds": rounds,
        "wall_s": round(wall, 2),
        "cpu_s": round(cpu, 2),
        "held": round(held, 3),
        "trees_per_s": round(trees / wall, 1),
        "trees_per_cpu_s": round(trees / cpu, 1),
        "trees_per_round": round(trees / rounds, 1),
        "round_ms": round(wall / rounds * 1000, 1),
        "phases_ms": {
            name: phase.mean and round(phase.mean, 1) for name, phase in last.statistics.phases.items()
        },
    }


def _in_process(folder: Path, arguments: list[str]) -> dict[str, Any]:
    """Measure the code in ``folder``, in a process of its own. ``-P``: the modules beside this file are not importable alone."""
    line = [sys.executable, "-P", str(Path(__file__).resolve()), "--one", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(line, cwd=folder, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if Path(figures["code"]) != folder:
        msg = f"measured the code in {figures['code']}, expected that in {folder}"
        raise RuntimeError(msg)
    return figures


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", type=Path, help="the folder of the other state")
    parser.add_argument("--case", choices=_CASES, default="wordcount")
    parser.add_argument("--pending", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="how often each runs")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--warmup", type=float, default=10)
    parser.add_argument("--one", action="store_true", help="measure the imported code once")
    args = parser.parse_args()
    if args.one or args.against is None:
        settings = {"topology.max.spout.pending": args.pending} if args.pending else {}
        print(json.dumps(run_one(args.case, args.workers, settings, args.seconds, args.warmup)))
        return
    from benchmarks.word_count import spread

    given = {name: str(getattr(args, name)) for name in ("case", "pending", "workers", "seconds", "warmup")}
    arguments = [word for name, value in given.items() for word in (f"--{name}", value)]
    here = Path(__file__).resolve().parents[1]
    ratios: dict[str, list[float]] = {name: [] for name in _RATIOS}
    for _ in range(args.rounds):
        before, now = (_in_process(folder.resolve(), arguments) for folder in (args.against, here))
        print(json.dumps(before), json.dumps(now), sep="\n", flush=True)
        for name, values in ratios.items():
            values.append(now[name] / before[name])
    print(json.dumps({"case": args.case, **{name: spread(values) for name, values in ratios.items()}}))


if __name__ == "__main__":
    main()
