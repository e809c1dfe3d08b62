"""The whole table of what was promised of speed: ours and the peers' in turn, with ratios.

    python -m benchmarks.table [--rows acked pystorm] [--rounds 5] [--seconds 15] [--warmup 15]
    python -m benchmarks.table --list            # the rows, and what each is made of
    python -m benchmarks.table --show [--write]  # the table of what has been measured so far, into docs/benchmarks.md too
    python -m benchmarks.table --smoke           # a round that is too short to mean anything: does it still run?

A round measures each row's own side and then its peer's; what several rows need is measured once a round. Every
measurement has a process of its own, is begun when the machine is quiet (``--patience``), and is appended to
build/bench/results.jsonl when it is done. So a run can be broken off: the same command goes on where it was. ``--anew``
begins again.

Printed, and written to build/bench/table.md, are the ratios' minimum, median and maximum over the rounds; a promise is reached
where the median reaches it. *per CPU s* is the ratio of what either did with a second of CPU, where both say so: it is hurt
least by other work. *other work* is how many cores other processes have used meanwhile: median and maximum.
build/bench/table.svg is the plot, build/bench/table.jsonl is for programs.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.cpu import busy_cores, machine
from benchmarks.document import write_between
from benchmarks.measurements import Asked, UnavailableError, measure
from benchmarks.places import CODE, ROOT
from benchmarks.records import Records, code_state
from benchmarks.rows import ROWS, Row, rows_named

FOLDER = ROOT / "build" / "bench"
_DOCUMENT = ROOT / "docs" / "benchmarks.md"
_BEGIN, _END = "<!-- table: python -m benchmarks.table --show --write -->", "<!-- end of table -->"
#: A measurement that takes longer than this beside its own seconds is stuck: building the Storm peer takes a minute or two.
_SLACK_SECS = 600.0
#: So many cores of others' work are quiet.
_QUIET_CORES = 0.15
_PER_CPU = "words_per_cpu_s"


@dataclass(frozen=True)
class Line:
    """A row of the table: what its rounds have given."""

    row: Row
    ours: list[float]
    peer: list[float]
    values: list[float]  # ratios, or ours where there is no peer
    per_cpu: list[float]
    others: list[float]
    missing: str = ""

    @property
    def middle(self) -> float:
        """The median of its values."""
        return statistics.median(self.values)


def wait_until_quiet(patience: float) -> float:
    """Wait for others to be done, for so many seconds at most; returns how many cores they use then."""
    ends = time.monotonic() + patience
    while (busy := busy_cores()) > _QUIET_CORES and time.monotonic() < ends:
        time.sleep(0.5)
    return busy


def in_own_process(name: str, asked: Asked) -> Mapping[str, Any]:
    """Measure in a process of its own: nothing is left of one for the next, and one that is stuck can be ended."""
    command = [sys.executable, "-m", "benchmarks.measurements", name]
    command += ["--seconds", str(asked.seconds), "--warmup", str(asked.warmup)]
    log = FOLDER / "logs" / f"{name.replace('/', '-')}.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as errors:
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=CODE, start_new_session=True
        )
        try:
            printed, _ = child.communicate(timeout=_SLACK_SECS + 4 * (asked.seconds + asked.warmup))
        except BaseException as error:  # also a keyboard interrupt: nothing may run on
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                return {"unavailable": f"no result after {error.timeout:g} s"}
            raise
    try:
        figures: Mapping[str, Any] = json.loads(printed.strip().splitlines()[-1])
    except (IndexError, ValueError):
        last = (log.read_text().strip().splitlines() or ["no message"])[-1]
        return {"unavailable": f"failed: {last[:200]} ({log.relative_to(ROOT)})"}
    return figures


def in_this_process(name: str, asked: Asked) -> Mapping[str, Any]:
    """Measure here: one session of Spark serves all, which saves time and spoils figures."""
    try:
        return measure(name, asked)
    except UnavailableError as error:
        return {"unavailable": str(error)}


def run_rounds(
    rows: Sequence[Row],
    rounds: int,
    records: Records,
    measured: Callable[[str], Mapping[str, Any]],
    patience: float,
) -> None:
    """Measure what is missing of these rounds of these rows."""
    given_up: set[str] = set()
    for round_ in range(1, rounds + 1):
        for name in dict.fromkeys(name for row in rows for name in row.measurements):
            if (round_, name) in records.figures or name in given_up:
                continue
            before = wait_until_quiet(patience) if patience else None
            began = time.monotonic()
            figures = dict(measured(name))
            if "unavailable" in figures:
                given_up.add(name)
            elif before is not None:
                figures["busy_before"] = round(before, 2)
            records.add(round_, name, figures)
            took = time.monotonic() - began
            told = (
                f"not measured: {figures['unavailable']}" if "unavailable" in figures else json.dumps(figures)
            )
            print(f"round {round_} {name} ({took:.0f} s): {told}", file=sys.stderr, flush=True)


def line_of(row: Row, records: Records, rounds: int) -> Line:
    """A row's rounds: ratios of those in which both sides were measured, and what there is of either side."""
    line = Line(row, [], [], [], [], [])
    for round_ in range(1, rounds + 1):
        ours = records.figures.get((round_, row.ours.measurement))
        theirs = records.figures.get((round_, row.peer.measurement)) if row.peer is not None else None
        if ours is not None:
            line.ours.append(row.ours.of(ours))
        if row.peer is not None and theirs is not None:
            line.peer.append(row.peer.of(theirs))
        if ours is None or (theirs is None and row.peer is not None):
            continue
        line.values.append(line.ours[-1] / line.peer[-1] if row.peer is not None else line.ours[-1])
        if theirs is not None and theirs is not ours and ours.get(_PER_CPU) and theirs.get(_PER_CPU):
            line.per_cpu.append(ours[_PER_CPU] / theirs[_PER_CPU])
        told = [one for one in (ours, theirs) if one is not None and {"other_cpu_s", "wall_s"} <= one.keys()]
        line.others.extend(figures["other_cpu_s"] / figures["wall_s"] for figures in told)
    if line.values:
        return line
    reasons = [f"{name}: {records.missing[name]}" for name in row.measurements if name in records.missing]
    return replace(line, missing="; ".join(reasons) or "not measured")


def number(value: float) -> str:
    """Three digits of it, or whole thousands and millions."""
    for least, size, letter in ((1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if value >= least:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def promise(row: Row, bound: float | None, middle: float) -> str:
    """A bound, and whether it is reached."""
    if bound is None:
        return "-"
    sign, times = (">=" if row.better == "more" else "<="), ("x" if row.peer is not None else f" {row.unit}")
    return f"{sign} {bound:g}{times} **{'reached' if row.reaches(middle, bound) else 'missed'}**"


def cells(line: Line) -> list[str]:
    """The table's cells of a line."""
    row = line.row
    unit = "" if row.unit == "words/s" else f" {row.unit}"
    sides = [number(statistics.median(side)) + unit if side else "-" for side in (line.ours, line.peer)]
    if line.missing:
        return [
            row.title,
            *sides,
            line.missing,
            "-",
            *(_bound(row, b) for b in (row.first, row.goal)),
            "0",
            "-",
        ]
    digits = [f"{value:.2f}" for value in (min(line.values), line.middle, max(line.values))]
    return [
        row.title,
        *sides,
        " / ".join(digits) + ("" if row.peer is not None else unit),
        f"{statistics.median(line.per_cpu):.2f}" if line.per_cpu else "-",
        promise(row, row.first, line.middle),
        promise(row, row.goal, line.middle),
        str(len(line.values)),
        f"{statistics.median(line.others):.2f}, {max(line.others):.2f}" if line.others else "-",
    ]


def _bound(row: Row, bound: float | None) -> str:
    return "-" if bound is None else f"{'>=' if row.better == 'more' else '<='} {bound:g}"


_HEAD = [
    "comparison",
    "ours",
    "peer",
    "ratio min / median / max",
    "per CPU s",
    "first step",
    "goal",
    "rounds",
    "other work",
]


def markdown(lines: Sequence[Line]) -> str:
    """The table, in columns for people who read it as it is."""
    rows = [_HEAD, *map(cells, lines)]
    widths = [max(len(row[column]) for row in rows if len(row[column]) < 80) for column in range(len(_HEAD))]
    texts = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows]
    texts.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(texts) + "\n"


def told(line: Line) -> dict[str, Any]:
    """A line for programs."""
    row = line.row
    known = {"row": row.key, "title": row.title, "rounds": len(line.values)}
    if line.missing:
        return {**known, "missing": line.missing}
    spread = dict(
        zip(("min", "median", "max"), (min(line.values), line.middle, max(line.values)), strict=True)
    )
    return {
        **known,
        "ratio" if row.peer is not None else row.unit: {
            name: round(value, 4) for name, value in spread.items()
        },
        "first_step": row.first,
        "first_step_reached": row.reaches(line.middle, row.first),
        "goal": row.goal,
        "goal_reached": row.reaches(line.middle, row.goal),
        "ours": line.ours,
        "peer": line.peer,
    }


def plot(lines: Sequence[Line], path: Path) -> None:
    """How far each row is: 1 is its first step, to the right is better."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    shown = [line for line in lines if line.values and (line.row.first or line.row.goal)]
    if not shown:
        return
    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.45 * len(shown)))
    for y, line in enumerate(reversed(shown)):
        row = line.row
        base = row.first or row.goal
        assert base is not None

        def share(value: float, base: float = base, row: Row = row) -> float:
            return value / base if row.better == "more" else base / max(value, 1e-9)

        middle, ends = share(line.middle), sorted(map(share, line.values))
        axes.barh(y, middle, color="tab:green" if middle >= 1 else "tab:red", alpha=0.6)
        axes.plot([ends[0], ends[-1]], [y, y], color="black", linewidth=1.5)
        if row.goal is not None and row.first is not None:
            axes.plot(share(row.goal), y, marker="D", color="black", markersize=4)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_yticks(range(len(shown)), [line.row.title for line in reversed(shown)], fontsize=8)
    axes.set_xscale("log")
    axes.set_xlabel("times the first step (line), goal (diamond); black: from the worst round to the best")
    figure.tight_layout()
    figure.savefig(path)


def write(lines: Sequence[Line], folder: Path, heading: str, *, quiet: bool = False) -> None:
    """Print the table, unless ``quiet``, and put all forms of it into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = f"{heading}\n\n{markdown(lines)}"
    if not quiet:
        print(text)
    (folder / "table.md").write_text(text)
    (folder / "table.jsonl").write_text("".join(json.dumps(told(line)) + "\n" for line in lines))
    plot(lines, folder / "table.svg")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", choices=[row.key for row in ROWS], metavar="ROW")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15.0, help="measured, of each side and round")
    parser.add_argument("--warmup", type=float, default=15.0, help="seconds before those")
    parser.add_argument("--patience", type=float, default=20.0, help="seconds to wait for a quiet machine")
    parser.add_argument("--anew", action="store_true", help="put earlier results aside")
    parser.add_argument("--show", action="store_true", help="measure nothing")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    parser.add_argument("--list", action="store_true", help="the rows")
    parser.add_argument("--smoke", action="store_true", help="a very short round, on the local engine mostly")
    args = parser.parse_args()
    rows = rows_named(args.rows)
    if args.list:
        for row in rows:
            print(f"{row.key:20} {row.title}  [{', '.join(row.measurements)}]")
        return
    folder, path = FOLDER, FOLDER / "results.jsonl"
    asked = Asked(args.seconds, args.warmup)
    if args.smoke:
        folder, asked = FOLDER / "smoke", Asked(1.0, 0.5, smoke=True)
        path = folder / "results.jsonl"
        args.rounds, args.patience, args.anew = 1, 0.0, True
    if args.anew and path.exists():
        path.rename(path.with_suffix(f".{int(path.stat().st_mtime)}.jsonl"))
    code = code_state()
    records = Records(path, code, asdict(asked))
    if not args.show:
        measured = in_this_process if args.smoke else in_own_process
        run_rounds(rows, args.rounds, records, lambda name: measured(name, asked), args.patience)
    lines = [line_of(row, records, args.rounds) for row in rows]
    if args.smoke:
        write(lines, folder, "The smoke form: these figures mean nothing.", quiet=True)
        return
    what = f"{args.seconds:g} s per measurement, after a warm-up of {args.warmup:g} s"
    heading = f"Measured on {machine()}; package {code}; {what}."
    write(lines, folder, heading)
    if args.write:
        write_between(_DOCUMENT, _BEGIN, _END, f"\n{heading}\n\n{markdown(lines)}\n")


if __name__ == "__main__":
    main()
