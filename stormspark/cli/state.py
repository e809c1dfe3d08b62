"""Prints the state of a component as a table."""

from __future__ import annotations

import json
import sys
from itertools import islice

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stormspark.checkpoint.plain_state import Entry, StateOfComponent, find_state
from stormspark.cli.output import wide_enough
from stormspark.state_reading import state_table_of

__all__ = ["print_state"]

#: The most characters of a key or a value that are shown.
_LETTERS = 200


def print_state(topology: str, component: str, txid: int | None, limit: int, *, as_json: bool) -> int:
    """Print the first ``limit`` keys of a component's state, or all if ``limit`` is 0. Return the exit code.

    Raises `TopologyNotAliveError` for an unknown name, and `CheckpointError` if there is no such state.
    """
    found = find_state(state_table_of(topology), component, txid)
    entries = (entry for entries in found.batches() for entry in entries)
    if as_json:
        for entry in islice(entries, limit or None):
            sys.stdout.write(json.dumps(entry._asdict(), default=repr) + "\n")
        return 0
    _print_table(found, list(islice(entries, limit or None)), more=next(entries, None) is not None)
    return 0


def _print_table(found: StateOfComponent, entries: list[Entry], *, more: bool) -> None:
    console = wide_enough(Console(highlight=False), 160)
    of = f"{found.component}, {found.tasks} task{'s' * (found.tasks != 1)}, as of batch {found.txid}"
    if not entries:
        console.print(Text(f"{of}: no keys"))
        return
    console.print(Text(f"{of}: {f'the first {len(entries):,} keys' if more else f'{len(entries):,} keys'}"))
    table = Table(box=None, pad_edge=False)
    for name in Entry._fields:
        table.add_column(name)
    for entry in entries:
        table.add_row(str(entry.task), Text(_short(entry.key)), Text(_short(entry.value)))
    console.print(table)


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _LETTERS else f"{shown[:_LETTERS]}..."
