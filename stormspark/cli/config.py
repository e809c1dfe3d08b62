"""``stormspark config``: prints what settings there are, and what they do."""

from __future__ import annotations

import difflib
import json
import re
import sys

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from stormspark.cli.output import wide_enough
from stormspark.config_reference import Entry, matching

__all__ = ["print_settings"]

#: The ids of rows of the parity table, which mean nothing on a terminal.
_ROWS = re.compile(r" \([A-Z]+\d+[a-z]?(?:, [A-Z]+\d+[a-z]?)*\)")


def print_settings(words: tuple[str, ...], *, as_json: bool) -> int:
    """Print the keys in whose name or meaning all ``words`` occur, and return the exit code: 1 if there are none."""
    found = matching(words)
    if as_json:
        sys.stdout.write(json.dumps([entry._asdict() for entry in found], indent=2) + "\n")
        return 0 if found else 1
    console = wide_enough(Console(highlight=False), 120)
    if not found:
        known = {part for entry in matching(()) for part in (entry.key, *entry.key.split("."))}
        close = [one for word in words for one in difflib.get_close_matches(word, sorted(known), 1)]
        meant = f": did you mean {' '.join(close)}?" if len(close) == len(words) else ""
        console.print(
            f"no setting has {' and '.join(map(repr, words))} in its name or meaning{meant}", markup=False
        )
        return 1
    with_effect = [entry for entry in found if entry.has_effect]
    without = [entry for entry in found if not entry.has_effect]
    if with_effect:
        console.print(_table(with_effect))
    if without:
        console.print(("\n" if with_effect else "") + "Keys of Storm and Heron that have no effect here:\n")
        console.print(_table(without))
    return 0


def _table(entries: list[Entry]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("key", overflow="fold")
    if entries[0].has_effect:
        table.add_column("default", overflow="fold")
    table.add_column("meaning", ratio=1)
    for entry in entries:
        meaning = escape(_ROWS.sub("", entry.meaning))
        if entry.has_effect:
            table.add_row(
                escape(entry.key), escape(entry.default), f"{meaning} [dim]({escape(entry.values)})[/dim]"
            )
        else:
            table.add_row(escape(entry.key), meaning)
    return table
