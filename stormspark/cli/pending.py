"""Prints the open trees of a topology's source spouts. It reads them from the state of the acker query."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stormspark.cli.output import wide_enough

__all__ = ["print_pending"]


def print_pending(
    topology: str, checkpoint: str | None, most: int, conf: Mapping[str, Any], *, as_json: bool
) -> int:
    """Print how many trees are open, by component and task, and up to ``most`` of the oldest; returns the exit code.

    ``conf`` has settings for the Spark that reads them. Only trees that have outlived their batch count. Raises
    `TopologyNotAliveError` for an unknown name, and `CheckpointError` for a folder that can't be read.
    """
    from stormspark.spark.pending import read_pending

    found = read_pending(topology, checkpoint, most, conf)
    if found is None:
        reason = (
            f"{topology}: no open trees are recorded in {checkpoint or 'its checkpoint'}. Either no row of a source has outlived "
            f"its batch yet, or the topology has no source spouts, has no durable acker, or is exactly-once. Trees of other "
            f"spouts are not recorded"
        )
        if as_json:
            sys.stdout.write(json.dumps({"topology": topology, "open": None, "reason": reason}) + "\n")
        else:
            wide_enough(Console(highlight=False), 160).print(Text(reason))
        return 0
    total, counts, oldest = found
    if as_json:
        rows = [{**row, "opened": row["opened"].isoformat()} for row in oldest]
        by_task = [dict(zip(("component", "task", "open"), count, strict=True)) for count in counts]
        sys.stdout.write(
            json.dumps({"topology": topology, "open": total, "by_task": by_task, "oldest": rows}) + "\n"
        )
        return 0
    console = wide_enough(Console(highlight=False), 160)
    console.print(Text(f"{topology}: {total:,} open trees that have outlived their batch"))
    if total:
        console.print()
        console.print(_table(("component", "task", "open"), counts))
        console.print()
        if len(oldest) < total:
            console.print(f"the oldest {len(oldest):,} of them:")
        fields = ("root", "component", "task", "batch", "opened", "message_id")
        console.print(_table(fields, ([row[field] for field in fields] for row in oldest)))
    return 0


def _table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name.replace("_", " "))
    for row in rows:
        table.add_row(*(Text(f"{value:,}" if isinstance(value, int) else str(value)) for value in row))
    return table
