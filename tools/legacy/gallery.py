"""The table of what became of each topology, for a terminal, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tools.legacy.trials import Trial

__all__ = ["print_table", "summary"]

_WIDEST = 200
_COLOURS = {"yes": "green", "no": "red", "quiet": "yellow", "port": "yellow"}
_LEGEND = """\
loads          stormspark explain plans it; runs: stormspark run runs it for some seconds
yes, no        no: the last column says why; a run with yes may have errors of components, too
quiet          it runs, and no component emitted a tuple
port           it is written in Java: stormspark port has written its skeleton in Python, and the methods are to be written
-              not tried, because an earlier step failed, or because there is nothing to run
tuples         what each component emitted / executed, in the last run"""


def print_table(trials: Iterable[Trial]) -> None:
    """Print a row for each topology, and a line for each error."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDEST)
    table = Table(title="legacy projects", title_justify="left", show_lines=True)
    for column in (
        "project",
        "topology",
        "kind",
        "loads",
        "runs local",
        "runs on Spark",
        "tuples (emitted / executed)",
        "errors",
    ):
        table.add_column(column, overflow="fold")
    counts: Counter[str] = Counter()
    for one in trials:
        counts["topologies"] += 1
        for step, outcome in ("load", one.loads), ("run local", one.local), ("run on Spark", one.spark):
            counts[step] += outcome in ("yes", "quiet")
        tuples = "\n".join(f"{name} {n['emitted']:,} / {n['executed']:,}" for name, n in one.tuples.items())
        outcomes = [
            f"[{_COLOURS[outcome]}]{outcome}[/]" if outcome in _COLOURS else outcome
            for outcome in (one.loads, one.local, one.spark)
        ]
        topology = f"{one.topology}\n{one.place}" if one.place else one.topology
        table.add_row(
            escape(one.project),
            escape(topology),
            one.kind,
            *outcomes,
            escape(tuples),
            escape("\n".join(one.errors)),
        )
    console.print(table)
    console.print(summary(counts))
    console.print(_LEGEND, highlight=False)


def summary(counts: Counter[str]) -> str:
    """Return the last line.

    >>> summary(Counter({"topologies": 3, "load": 2, "run local": 1}))
    '3 topologies: 2 load, 1 run local, 0 run on Spark'
    """
    steps = ", ".join(f"{counts[step]} {step}" for step in ("load", "run local", "run on Spark"))
    return f"{counts['topologies']} topologies: {steps}"
