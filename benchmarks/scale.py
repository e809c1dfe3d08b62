"""What a tuple costs in the workers, against how much there is of everything: each should be flat, or linear in bytes.

    python -m benchmarks.scale [--dimensions workers size] [--rounds 5] [--seconds 1] [--write]
    python -m benchmarks.scale --smoke           # two points of each: does it still run?

Workers, tasks, streams, bytes of a tuple, open trees, fan-out and anchors are varied one at a time (`benchmarks.scale_cases`),
without an engine, as `benchmarks.tuple_path` does it. Each point has a process of its own, points take turns
(`benchmarks.in_turn`), and the least CPU that a tuple took in any turn counts: other work makes figures larger, never
smaller. Prints a JSON line for each dimension, then the table. ``--write`` puts that into docs/scale.md and draws
benchmarks/scale.svg.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks import scale_cases
from benchmarks.cpu import busy_cores, machine
from benchmarks.document import write_between
from benchmarks.in_turn import Case, Turn, in_this_process, in_turn
from benchmarks.places import ROOT

DOCUMENT, PLOT = ROOT / "docs" / "scale.md", ROOT / "benchmarks" / "scale.svg"
_BEGIN, _END = "<!-- figures: python -m benchmarks.scale --write -->", "<!-- end of figures -->"


@dataclass(frozen=True)
class Dimension:
    """What is varied, and what is hoped: that a tuple's cost is ``flat``, or its bytes' is (``linear``)."""

    key: str
    title: str
    points: tuple[tuple[int, Case], ...]
    hoped: Literal["flat", "linear"] = "flat"


def _fan(workers: int = 2, tasks: int | None = None, streams: int = 1, size: int = 10, out: int = 10) -> Case:
    return Case(scale_cases.fan, (workers, tasks or workers, streams, size, out))


_SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)

DIMENSIONS = (
    Dimension(
        "workers",
        "workers, each with one task per component",
        tuple((n, _fan(n)) for n in (1, 2, 4, 8, 16, 32)),
    ),
    Dimension(
        "tasks",
        "tasks per component, on 2 workers",
        tuple((n, _fan(2, n)) for n in (2, 8, 32, 128)),
    ),
    Dimension(
        "streams",
        "streams of a bolt, on 2 workers",
        tuple((n, _fan(streams=n)) for n in (1, 4, 16, 64)),
    ),
    Dimension(
        "size",
        "bytes per tuple, in 1 worker",
        tuple((n, _fan(1, size=n, out=1)) for n in _SIZES),
    ),
    Dimension(
        "size_apart",
        "bytes per tuple, on 2 workers",
        tuple((n, _fan(2, size=n, out=1)) for n in _SIZES),
        "linear",
    ),
    Dimension(
        "open_trees",
        "open trees beside the work, in 1 worker",
        tuple((n, Case(scale_cases.held, (n,))) for n in (1, 1_000, 10_000, 100_000, 1_000_000)),
    ),
    Dimension(
        "fan_out",
        "tuples emitted per input tuple, on 2 workers",
        tuple((n, _fan(out=n)) for n in (1, 3, 10, 100, 1_000)),
    ),
    Dimension(
        "anchors",
        "anchors per tuple, in 1 worker",
        tuple((n, Case(scale_cases.anchors, (1, n))) for n in (1, 3, 10, 30, 100)),
    ),
    Dimension(
        "anchors_apart",
        "anchors per tuple, on 2 workers",
        tuple((n, Case(scale_cases.anchors, (2, n))) for n in (1, 3, 10, 30, 100)),
    ),
)


@dataclass(frozen=True)
class Curve:
    """A dimension and, for each of its points, what all turns took."""

    dimension: Dimension
    turns: list[list[Turn]]

    @property
    def xs(self) -> list[int]:
        """How much there was at each point."""
        return [x for x, _ in self.dimension.points]

    @property
    def ns(self) -> list[float]:
        """The least CPU nanoseconds of a tuple at each point."""
        return [min(turn.ns for turn in turns) for turns in self.turns]

    def verdict(self) -> str:
        """How flat it is; of one that is linear, what a byte costs and how much more than that the worst point takes."""
        xs, ns = self.xs, self.ns
        if self.dimension.hoped == "flat":
            return f"{max(ns) / ns[0]:.2f} times the first"
        slope = (ns[-1] - ns[0]) / (xs[-1] - xs[0])
        off = max(took / (ns[0] + slope * (x - xs[0])) for x, took in zip(xs, ns, strict=True))
        return f"{slope:.2f} ns per byte; {off:.2f} times the line"

    def told(self) -> dict[str, Any]:
        """For programs."""
        return {
            "dimension": self.dimension.key,
            "x": self.xs,
            "cpu_ns_per_tuple": [
                {
                    "min": round(min(all_ns), 1),
                    "median": round(statistics.median(all_ns), 1),
                    "max": round(max(all_ns), 1),
                }
                for all_ns in ([turn.ns for turn in turns] for turns in self.turns)
            ],
            "turns": len(self.turns[0]),
            "verdict": self.verdict(),
        }


def measure(dimension: Dimension, rounds: int, seconds: float) -> Curve:
    """All points of a dimension in turn."""
    return Curve(dimension, in_turn([case for _, case in dimension.points], rounds, seconds))


def smoke(dimension: Dimension) -> Curve:
    """The first two points, for a moment, in this process."""
    scale_cases.Batch.tuples = 1_000
    short = Dimension(dimension.key, dimension.title, dimension.points[:2], dimension.hoped)
    return Curve(short, [[in_this_process(case, 0.01)] for _, case in short.points])


def markdown(curves: Sequence[Curve]) -> str:
    """The table."""
    lines = ["| what varies | size: CPU per tuple in ns | highest cost |", "| --- | --- | --- |"]
    for curve in curves:
        points = ", ".join(f"{x:,}: {_ns(took)}" for x, took in zip(curve.xs, curve.ns, strict=True))
        lines.append(f"| {curve.dimension.title} | {points} | {curve.verdict()} |")
    return "\n".join(lines) + "\n"


def _ns(value: float) -> str:
    return f"{value:,.0f}"


def plot(curves: Sequence[Curve], path: Path) -> None:
    """A panel for each dimension."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    mpl.rcParams["svg.fonttype"] = "none"  # letters as letters: a small file
    mpl.rcParams["svg.hashsalt"] = "scale"  # the same figures, the same file
    columns = 3
    rows = -(-len(curves) // columns)
    figure, panels = pyplot.subplots(rows, columns, figsize=(4 * columns, 2.6 * rows), squeeze=False)
    for axes, curve in zip(panels.flat, curves, strict=False):
        us = [took / 1000 for took in curve.ns]
        axes.plot(curve.xs, us, marker="o", markersize=4)
        axes.set_xscale("log")
        if curve.dimension.hoped == "linear":
            axes.set_yscale("log")
        else:
            axes.set_ylim(0, max(us) * 1.3)
        axes.minorticks_off()
        axes.set_title(curve.dimension.title, fontsize=9)
        axes.set_ylabel("CPU per tuple in us", fontsize=8)
        axes.tick_params(labelsize=8)
    for axes in list(panels.flat)[len(curves) :]:
        axes.set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dimensions", nargs="+", choices=[one.key for one in DIMENSIONS], metavar="WHAT")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of CPU, a turn")
    parser.add_argument("--write", action="store_true", help="docs/scale.md and benchmarks/scale.svg")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    heading = f"\nMeasured on {machine()}. Other work used {busy_cores():.1f} cores at the start.\n\n"
    curves = []
    for dimension in DIMENSIONS:
        if args.dimensions and dimension.key not in args.dimensions:
            continue
        curves.append(smoke(dimension) if args.smoke else measure(dimension, args.rounds, args.seconds))
        print(json.dumps(curves[-1].told()), flush=True)
    if args.smoke:
        return
    print(markdown(curves))
    if args.write:
        write_between(DOCUMENT, _BEGIN, _END, heading + markdown(curves))
        plot(curves, PLOT)


if __name__ == "__main__":
    main()
