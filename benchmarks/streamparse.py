"""Measures the word count of a streamparse project, run by its front-end, against Storm with pystorm and against our own.

    python -m benchmarks.streamparse --engine spark --workers 2 --seconds 20 [--vs-storm | --vs-native] [--rounds 3]

The bolts are those of the peer's ``pystorm_acked``, and the sentences have its shape; every sentence has an id, every tuple is
anchored and acked. Prints one JSON line a run, with the keys of the Storm peer. With ``--vs-storm`` Storm and stormspark run in
turn, with ``--vs-native`` the same word count written for stormspark and this one, and the ratios are printed: of words a
second, and of words a CPU second.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks import word_count
from benchmarks.storm_peer import run_storm
from stormspark.compat.streamparse import load
from stormspark.config import parse_assignment

_PROJECT = (
    Path(__file__).resolve().parent.parent / "tests" / "legacy" / "streamparse" / "projects" / "benchmark"
)
TOPOLOGY = _PROJECT / "topologies" / "wordcount.py"
#: Those of its config.json, by their number of workers.
ENVIRONMENTS = {1: "one", 2: "two", 3: "three"}
#: Those of the figures that a ratio is made of.
_RATES = ("words_per_s", "words_per_cpu_s")


def run(engine: str, workers: int, seconds: float, warmup: float, conf: dict[str, Any]) -> dict[str, Any]:
    """Measure the project once."""
    topology = load(TOPOLOGY, environment=ENVIRONMENTS[workers])
    first, last = word_count.measure_on(engine, topology, conf, warmup, seconds)
    figures = word_count.result("pystorm_acked", engine, workers, first, last)
    return {**figures, "engine": f"stormspark-streamparse-{engine}"}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    parser.add_argument("--workers", type=int, choices=ENVIRONMENTS, default=2)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--warmup", type=float, default=10)
    parser.add_argument("--vs-storm", action="store_true", help="run Storm with pystorm in turn")
    parser.add_argument("--vs-native", action="store_true", help="run our own word count in turn")
    parser.add_argument("--rounds", type=int, default=3, help="how often each runs")
    parser.add_argument("-c", dest="conf", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    conf = dict(map(parse_assignment, args.conf))
    others = {}
    if args.vs_storm:
        others["storm"] = lambda: run_storm("pystorm_acked", args.seconds, args.warmup)
    if args.vs_native:
        others["native"] = lambda: word_count.run(
            "wordcount_acked", args.engine, args.workers, args.seconds, args.warmup, conf
        )
    ratios: dict[str, dict[str, list[float]]] = {other: {rate: [] for rate in _RATES} for other in others}
    for _ in range(args.rounds if others else 1):
        theirs = {}
        for other, measure in others.items():
            theirs[other] = measure()
            print(json.dumps(theirs[other]), flush=True)
        ours = run(args.engine, args.workers, args.seconds, args.warmup, conf)
        print(json.dumps(ours), flush=True)
        for other, figures in theirs.items():
            for rate in _RATES:
                ratios[other][rate].append(ours[rate] / figures[rate])
    for other, of_rates in ratios.items():
        spreads = {rate: word_count.spread(values) for rate, values in of_rates.items()}
        print(json.dumps({"engine": args.engine, f"ratio_to_{other}": spreads, "rounds": args.rounds}))


if __name__ == "__main__":
    main()
