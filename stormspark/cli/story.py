"""Prints stories of tuple trees: a list of the latest stories, failed trees first, or everything that is known about one tree."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from stormspark.cli.output import wide_enough
from stormspark.likely_names import nearest
from stormspark.worker.stories.story import Story, read_stories, stories_of
from stormspark.worker.stories.telling import seconds_text, tell

__all__ = ["print_stories"]

_OK, _NONE = 0, 1
#: The list shows at most this many characters of a reason.
_WHY = 120


class _NoFolder(click.ClickException):
    """The error for a topology that has no log folder."""

    exit_code = 2


def print_stories(folder: Path, root: str | None, most: int, *, as_json: bool) -> int:
    """Print the stories about ``root`` in a topology's log folder; returns the exit code.

    If ``root`` is None, print a list of at most ``most`` stories. Raises click's error if there is no such folder.
    """
    if not folder.is_dir():
        beside = folder.parent.iterdir() if folder.parent.is_dir() else ()
        others = [path.name for path in beside if any(path.glob("stories-*.jsonl*"))]
        msg = (
            f"there are no logs of a topology in {folder}: name another folder with --log-dir, or run this command on a host of "
            f"the topology's workers{nearest(folder.name, others)}"
        )
        raise _NoFolder(msg)
    stories = read_stories(folder)
    chosen = (
        stories_of(stories, root) if root is not None else sorted(stories, key=lambda s: not s.failed)[:most]
    )
    if as_json:
        sys.stdout.write("".join(json.dumps(asdict(story)) + "\n" for story in chosen))
        return _OK if chosen else _NONE
    console = Console(highlight=False)
    if not chosen:
        missing = f"there is no story of {root}" if root is not None else "there are no stories"
        console.print(
            Text(f"{missing} in {folder}: none was written, or it was rotated away"), soft_wrap=True
        )
        return _NONE
    if root is None:
        console.print(_table(chosen, console))
        if untold := sum(story.untold for story in stories):
            console.print(f"{untold:,} more failures have no story (stormspark.story.failures.per.sec)")
        return _OK
    for story in chosen:
        for line in tell(story, stories):
            console.print(Text(line), soft_wrap=True)
    return _OK


def _table(stories: Sequence[Story], console: Console) -> Table:
    wide_enough(console, 240)
    table = Table(box=None, pad_edge=False)
    for name in ("ended", "story", "outcome", "after", "spout", "message", "traced", "why"):
        table.add_column(name, no_wrap=name != "why")
    for story in stories:
        ended = datetime.fromtimestamp(story.ended, UTC).strftime("%Y-%m-%d %H:%M:%S")
        table.add_row(
            ended,
            story.root,
            Text(story.outcome or "unknown", style="red" if story.failed else ""),
            "" if story.seconds is None else seconds_text(story.seconds),
            Text(story.spout or "?"),
            Text((story.message_id or "?")[:40]),
            "yes" if story.traced else "no",
            Text(story.why[:_WHY]),
        )
    return table
