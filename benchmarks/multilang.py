"""Measures the word count whose bolts are children that speak Storm's multilang protocol.

    python -m benchmarks.multilang [--engine spark] [--children storm.py] [--vs-storm [--rounds 3]]

Prints one JSON line with the keys of the Storm peer. A word is counted when the counting child has acked it, as the peer does;
CPU is that of all processes, children included. With ``--vs-storm`` the peer and stormspark run in turn, with the very same
children (STORM_PEER names the folder of the peer's sources), and the ratio of each round is printed. There are three kinds:

    storm.py    Storm's own library for Python. It waits for the task ids of each word that it emits, so what is measured
                is mostly how long a child waits for an answer, and what Python costs in the child.
    pystorm     what streamparse's users have; it waits for nothing.
    c           costs next to nothing, so what is measured is the engine's side of the protocol alone.

One spout, one splitting and one counting child, one worker, and 200 sentences pending, as with the peer.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from benchmarks.storm_peer import PYSTORM, peer_folder, peer_sources, run_storm
from benchmarks.topologies import Items
from benchmarks.word_count import Mark, measure_on, result, spread
from stormspark import Fields, TopologyBuilder
from stormspark.api import Topology
from stormspark.config import parse_assignment
from stormspark.multilang import ShellBolt
from tests.maven_jars import maven_jars

_ROOT = Path(__file__).resolve().parent.parent
#: The peer's scripts and our own, which say the same.
_STORM_PY = {"split": ("stormpy_split.py", "split_storm.py"), "count": ("stormpy_count.py", "tally_storm.py")}


class Children:
    """The children of one kind, in ``folder``: the command of each, and how Storm runs the same."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        if kind == "storm.py":
            _put_storm_py(folder)
        elif kind == "c":
            # Under the name that the peer calls Python by: it takes the name of the script for what to do.
            source = _ROOT / "benchmarks" / "children" / "words.c"
            subprocess.run(["cc", "-O2", "-o", folder / "python3", source], check=True)

    def command(self, task: str) -> list[str]:
        """How stormspark starts the child that does ``task``: split or count."""
        if self.kind == "storm.py":
            return ["python3", f"{task}.py"]
        if self.kind == "c":
            return ["./python3", task]
        peer = peer_folder()
        if not (peer / PYSTORM).exists():
            msg = "pystorm is the peer's: let it run once, by --vs-storm"
            raise FileNotFoundError(msg)
        return [str(peer / PYSTORM), str(peer / "python" / f"pystorm_{task}.py")]

    def storm(self, parallelism: int, seconds: float, warmup: float) -> dict[str, Any]:
        """Measure the peer once, with so many children of each kind."""
        case = "pystorm_acked" if self.kind == "pystorm" else "multilang_acked"
        programs = self.folder if self.kind == "c" else None
        return run_storm(case, seconds, warmup, "--par", f"1,{parallelism},{parallelism}", programs=programs)


def _put_storm_py(folder: Path) -> None:
    """Put the scripts and Storm's storm.py into ``folder``."""
    peer = peer_sources() / "python"
    ours = _ROOT / "tests" / "legacy" / "multilang" / "children"
    for task, (theirs, own) in _STORM_PY.items():
        source = peer / theirs if (peer / theirs).exists() else ours / own
        shutil.copyfile(source, folder / f"{task}.py")
    for jar in maven_jars("multilang"):
        with zipfile.ZipFile(jar) as archive:
            if "resources/storm.py" in archive.namelist():
                (folder / "storm.py").write_bytes(archive.read("resources/storm.py"))


def build(children: Children, parallelism: int) -> Topology:
    """The topology."""
    builder = TopologyBuilder()
    builder.set_spout("spout", Items(False, True))
    split = ShellBolt(children.command("split"), ["item"], cwd=children.folder)
    count = ShellBolt(children.command("count"), cwd=children.folder)
    builder.set_bolt("split", split, parallelism).shuffle_grouping("spout")
    builder.set_bolt("count", count, parallelism).fields_grouping("split", Fields("item"))
    return builder.create_topology("multilang_acked")


def run(
    children: Children,
    engine: str,
    workers: int,
    parallelism: int,
    seconds: float,
    warmup: float,
    conf: dict[str, Any],
) -> dict[str, Any]:
    """Measure once."""
    settings = {"topology.workers": workers, "topology.max.spout.pending": 200, **conf}
    first, last = measure_on(engine, build(children, parallelism), settings, warmup, seconds)
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


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    parser.add_argument("--children", choices=("storm.py", "pystorm", "c"), default="storm.py")
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
    with tempfile.TemporaryDirectory() as folder:
        children = Children(args.children, Path(folder))
        for _ in range(args.rounds if args.vs_storm else 1):
            storm = children.storm(args.parallelism, args.seconds, args.warmup) if args.vs_storm else None
            if storm is not None:
                print(json.dumps(storm), flush=True)
            ours = run(children, args.engine, args.workers, args.parallelism, args.seconds, args.warmup, conf)
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
        print(json.dumps({"children": args.children, "engine": args.engine, **summary}))


if __name__ == "__main__":
    main()
