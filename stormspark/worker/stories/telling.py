"""Tells the story of a tree in lines for people: how it ended, what happened when, and where its tuples were."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator

from stormspark.worker.stories.story import Story, StoryEvent

__all__ = ["seconds_text", "tell", "timeline"]

#: A story names at most this many other stories about the same message.
_OTHERS = 5


def tell(story: Story, every: Iterable[Story]) -> Iterator[str]:
    """Yield the lines of one story. ``every`` are all stories, among which may be others about the same message."""
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
    return f"{seconds_text(at):>12}  {text}"


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
        turn = f", {seconds_text(event.at - event.since)} into its turn"
    return (
        f" {seconds_text(event.at - first)} after {'it' if event.tuples == 1 else 'the first'} had come{turn}"
    )


def seconds_text(seconds: float) -> str:
    """Format a time for people.

    >>> [seconds_text(s) for s in (0.0, 0.0000123, 0.0123, 1.5, 31.25)]
    ['0.000 ms', '0.012 ms', '12.300 ms', '1.500 s', '31.250 s']
    """
    return f"{seconds * 1000:.3f} ms" if abs(seconds) < 1 else f"{seconds:,.3f} s"
