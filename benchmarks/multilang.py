"""Measures the word count whose bolts are children: Python over Storm's multilang protocol, with Storm's own storm.py.

    python -m benchmarks.multilang [--engine spark] [--seconds 20] [--warmup 10] [--vs-storm [--rounds 3]]

Prints one JSON line with the keys of the Storm peer. A word is counted when the counting child has acked it, as the peer does;
CPU is that of all processes, children included. With ``--vs-storm`` the peer's ``multilang_acked`` and stormspark run in turn,
with the very same scripts (STORM_PEER names the folder of the peer's sources), and the ratio of each round is printed.

One spout, one splitting and one counting child, one worker, and 200 sentences pending, as with the peer; with ``--parallelism``
both have so many children of each kind. storm.py waits for the task ids of each word that it emits: with one splitting child
what is measured is mostly how long it waits for an answer, with more of them what all that is done for a word costs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from benchmarks.storm_peer import run_storm
from benchmarks.topologies import Items
from benchmarks.word_count import Mark, measure, result, spread
from stormspark import Fields, TopologyBuilder
from stormspark.api import Topology
from stormspark.config import parse_assignment
from stormspark.engine import RunningTopology
from stormspark.multilang import ShellBolt
from tests.maven_jars import maven_jars

_ROOT = Path(__file__).resolve().parent.parent
#: By what they do: the peer's scripts and our own, which say the same.
_SCRIPTS = {"split": ("stormpy_split.py", "split_storm.py"), "count": ("stormpy_count.py", "tally_storm.py")}


def resources(folder: Path) -> Path:
    """Put the scripts and Storm's storm.py into ``folder``."""
    peer = Path(os.environ.get("STORM_PEER", _ROOT.parent / "shared" / "peers" / "storm"), "python")
    ours = _ROOT / "tests" / "legacy" / "multilang" / "children"
    for name, (theirs, own) in _SCRIPTS.items():
        source = peer / theirs if (peer / theirs).exists() else ours / own
        shutil.copyfile(source, folder / f"{name}.py")
    for jar in maven_jars("multilang"):
        with zipfile.ZipFile(jar) as archive:
            if "resources/storm.py" in archive.namelist():
                (folder / "storm.py").write_bytes(archive.read("resources/storm.py"))
    return folder


def build(folder: Path, parallelism: int) -> Topology:
    """The topology."""
    builder = TopologyBuilder()
    builder.set_spout("spout", Items(False, True))
    split = ShellBolt(["python3", "split.py"], ["item"], cwd=folder)
    count = ShellBolt(["python3", "count.py"], cwd=folder)
    builder.set_bolt("split", split, parallelism).shuffle_grouping("spout")
    builder.set_bolt("count", count, parallelism).fields_grouping("split", Fields("item"))
    return builder.create_topology("multilang_acked")


def run(
    engine: str, workers: int, parallelism: int, seconds: float, warmup: float, conf: dict[str, Any]
) -> dict[str, Any]:
    """Measure once."""
    settings = {"topology.workers": workers, "topology.max.spout.pending": 200, **conf}
    running: RunningTopology
    with tempfile.TemporaryDirectory() as folder:
        topology = build(resources(Path(folder)), parallelism)
        if engine == "local":
            from stormspark.local import submit as submit_locally

            running = submit_locally(topology, conf=settings)
        else:
            from stormspark.spark import submit

            running = submit(topology, conf=settings)
        try:
            first, last = measure(running, warmup, seconds)
        finally:
            running.stop()
    return counted(result("multilang_acked", engine, workers, first, last), first, last)


def counted(line: dict[str, Any], first: Mark, last: Mark) -> dict[str, Any]:
    """The same with words that came back from the child, not those that it was sent."""
    acked = [mark.statistics.components["count"].acked for mark in (first, last)]
    words, wall = acked[1] - acked[0], last.at - first.at
    cpu = line["cpu_s"]
    return {
        **line,
        "words_per_s": round(words / wall),
        "words_per_cpu_s": round(words / cpu) if cpu else None,
    }


def storm_with(parallelism: int, seconds: float, warmup: float) -> dict[str, Any]:
    """Measure the peer once, with so many children of each kind."""
    spouts, splits, counts = 1, parallelism, parallelism
    return run_storm("multilang_acked", seconds, warmup, "--par", f"{spouts},{splits},{counts}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--parallelism", type=int, default=1, help="children of each kind")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--warmup", type=float, default=10)
    parser.add_argument("--vs-storm", action="store_true", help="run the Storm peer in turn, print the ratio")
    parser.add_argument("--rounds", type=int, default=3, help="with --vs-storm: how often each runs")
    parser.add_argument("-c", dest="conf", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    conf = dict(map(parse_assignment, args.conf))
    ratios, per_cpu = [], []
    for _ in range(args.rounds if args.vs_storm else 1):
        storm = storm_with(args.parallelism, args.seconds, args.warmup) if args.vs_storm else None
        if storm is not None:
            print(json.dumps(storm), flush=True)
        ours = run(args.engine, args.workers, args.parallelism, args.seconds, args.warmup, conf)
        print(json.dumps(ours), flush=True)
        if storm is not None:
            ratios.append(ours["words_per_s"] / storm["words_per_s"])
            per_cpu.append(ours["words_per_cpu_s"] / storm["words_per_cpu_s"])
    if args.vs_storm:
        summary = {
            "ratio_to_storm": spread(ratios),
            "ratio_per_cpu_s": spread(per_cpu),
            "rounds": args.rounds,
        }
        print(json.dumps({"case": "multilang_acked", "engine": args.engine, **summary}))


if __name__ == "__main__":
    main()
