"""Prints stories of tuple trees: a list of the latest stories, failed trees first, or everything that is known about one tree."""

from __future__ import annotations

import json
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from stormspark.cli.output import wide_enough
from stormspark.likely_names import nearest
from stormspark.worker.stories.story import Story, StoryEvent, read_stories, stories_of

__all__ = ["print_stories", "timeline"]

_OK, _NONE = 0, 1
#: `_WHY`: the list shows at most this many characters of a reason. `_OTHERS`: a story names at most this many other stories about
#: the same message.
_WHY, _OTHERS = 120, 5


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
        for line in _lines(story, stories):
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
            "" if story.seconds is None else _after(story.seconds),
            Text(story.spout or "?"),
            Text((story.message_id or "?")[:40]),
            "yes" if story.traced else "no",
            Text(story.why[:_WHY]),
        )
    return table


def _lines(story: Story, every: Iterable[Story]) -> Iterator[str]:
    """Yield the lines of one story."""
    yield f"story {story.root}: {story}"
    if story.replay_of:
        yield f"it is a replay of {story.replay_of}"
    yield ""
    yield from timeline(story)
    if story.holders:
        yield ""
        yield (
            "where its tuples were when it failed:"
            if story.failed
            else "where its tuples were when its spout's worker asked:"
        )
        yield from (f"  {holder}" for holder in story.holders)
    yield ""
    if not story.traced:
        yield "The tree was not traced, so the story has no steps before its end."
    if story.omitted:
        yield f"{story.omitted:,} more tuples moved, but these moves were not recorded."
    if story.outcome is None:
        yield "These files do not have its end: the tree is open, or its end was rotated away or is on another host."
    if len(story.hosts) > 1:
        yield f"Workers on {len(story.hosts)} hosts recorded this story: times between hosts are as exact as the hosts' clocks."
    others = [
        one
        for one in every
        if one.root != story.root and (one.spout, one.message_id) == (story.spout, story.message_id)
    ]
    if story.message_id is None:
        return
    for one in others[:_OTHERS]:
        traced = ", traced" if one.traced else ""
        yield f"The same message: {one.root} {one.outcome or 'unknown'}{traced}."
    if len(others) > _OTHERS:
        yield f"{len(others) - _OTHERS} more stories are about the same message."


def timeline(story: Story) -> Iterator[str]:
    """Yield one line per event, with the time since the emit."""
    if not story.traced and story.spout:
        yield _line(0.0, f"{story.spout} emitted it")
    came: dict[str, deque[tuple[float, int]]] = defaultdict(deque)
    over = False
    for event in story.events:
        if story.seconds is not None and event.at > story.seconds and not over:
            over = True
            yield _line(story.seconds, story.outcome or "")
        if event.to is not None and event.what in ("emitted", "received"):
            came[event.to].append((event.at, event.tuples))
        yield _line(event.at, _sentence(event, came[event.by]))
    if story.seconds is not None and not over:
        yield _line(story.seconds, story.outcome or "")


def _line(at: float, text: str) -> str:
    return f"{_after(at):>12}  {text}"


def _sentence(event: StoryEvent, came: deque[tuple[float, int]]) -> str:
    n = f"{event.tuples:,} tuple{'s' * (event.tuples != 1)}"
    match event.what:
        case "emitted":
            return f"{event.by} emitted {n} to {event.to}"
        case "emitted_away":
            return f"{event.by} emitted {n} to {event.to}, which lives in another worker"
        case "sent":
            return f"{event.by} sent {n} to {event.to}"
        case "received":
            return f"{n} came from {event.by} for {event.to}"
        case _:
            return f"{event.by} {event.what} {n}{_took(event, came)}"


def _took(event: StoryEvent, came: deque[tuple[float, int]]) -> str:
    """Return a text that says how long before the event the event's tuples arrived. Remove these tuples from ``came``.

    They are the oldest ones in ``came``, because a task executes tuples in the order in which they arrive.
    """
    left, first = event.tuples, None
    while left > 0 and came:
        at, tuples = came.popleft()
        first = at if first is None else first
        if tuples > left:
            came.appendleft((at, tuples - left))
        left -= tuples
    if first is None:
        return ""
    turn = ""
    if event.since is not None and event.since >= first:
        turn = f", {_after(event.at - event.since)} into its turn"
    return f" {_after(event.at - first)} after {'it' if event.tuples == 1 else 'the first'} had come{turn}"


def _after(seconds: float) -> str:
    """Format a time for people.

    >>> [_after(s) for s in (0.0, 0.0000123, 0.0123, 1.5, 31.25)]
    ['0.000 ms', '0.012 ms', '12.300 ms', '1.500 s', '31.250 s']
    """
    return f"{seconds * 1000:.3f} ms" if abs(seconds) < 1 else f"{seconds:,.3f} s"
