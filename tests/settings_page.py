"""Writes ``docs/reference/settings.md`` from the code: ``make settings``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stormspark.config_reference import Entry, described

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "settings.md"

_HEAD = """# Settings

<!-- Written by `make settings` from stormspark/config.py and stormspark/storm_keys.py. -->

A topology's configuration, `-c KEY=VALUE` of `stormspark run`, and the `config` of a streamparse or heronpy component set these
keys.
`stormspark config WORD` searches them on the terminal.
Keys in *italics* may also be set for a single component; the topology's value then holds for all others.
Ids in brackets are rows of [the parity table](parity.md).
"""
_USELESS = """
## Keys of Storm and Heron that have no effect

A topology that sets one of them runs, and a warning gives the reason.
"""


def page() -> str:
    """The text of the page."""
    entries = described()
    return "\n".join(
        [
            _HEAD,
            *_table(
                ("key", "default", "values", "meaning"), (_row(one) for one in entries if one.has_effect)
            ),
            _USELESS,
            *_table(
                ("key", "reason"), ((f"`{one.key}`", one.meaning) for one in entries if not one.has_effect)
            ),
            "",
        ]
    )


def _row(entry: Entry) -> tuple[str, ...]:
    key = f"*`{entry.key}`*" if entry.of_components else f"`{entry.key}`"
    return key, entry.default, entry.values, entry.meaning


def _table(columns: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"| {' | '.join('---' for _ in columns)} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
