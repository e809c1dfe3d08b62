"""The story of a tree. It tells which task emitted the tree, which way its tuples went, which tasks acked them, and which tasks
did not.

Each worker writes what it knows, one JSON object per line (`stormspark.worker.stories.stories`). This module merges the lines
of all workers into one `Story` per tree. It compares times of workers on the same host by that host's monotonic clock, and
times of different hosts by their wall clocks. A story lists the hosts that its lines come from.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "Holder",
    "Story",
    "StoryEvent",
    "merge_stories",
    "read_stories",
    "root_text",
    "sentences",
    "stories_of",
]


@dataclass(frozen=True)
class StoryEvent:
    """An event of some tuples of the tree, ``at`` seconds after the emit.

    ``what`` is ``emitted`` (``by`` a task ``to`` another), ``emitted_away`` (to a task of another worker), ``acked`` or
    ``failed`` (``by`` a task), ``sent`` (``by`` a worker ``to`` another) or ``received`` (for the task ``to``, where ``by`` is
    the worker that sent them). ``since`` is the time when the task began the chunk in which it acked.
    """

    at: float
    what: str
    by: str
    to: str | None = None
    tuples: int = 1
    since: float | None = None


@dataclass(frozen=True)
class Holder:
    """A place where tuples of the tree were when the tree failed.

    ``state`` is ``held`` (executed, neither acked nor failed), ``waiting`` (in an inbox), ``leaving`` (in a lane to another
    worker), ``dropped`` (executed, neither acked nor failed, and the bolt does not hold it any more), ``emitting`` (the spout's
    group of emits has not ended), or ``elsewhere`` (other workers know more). ``seconds`` is how long the task has held the
    oldest of these tuples.
    """

    task: str
    state: str
    tuples: int
    seconds: float | None = None

    def __str__(self) -> str:
        n = f"{self.tuples:,} tuple{'s' * (self.tuples != 1)}"
        if self.state == "held":
            since = "" if self.seconds is None else f" for {self.seconds:.1f} s"
            return f"{self.task} has held {n}{since} without ack or fail"
        if self.state == "waiting":
            return f"{n} wait{'s' * (self.tuples == 1)} in {self.task}"
        if self.state == "leaving":
            return f"{n} wait{'s' * (self.tuples == 1)} to leave for {self.task}"
        if self.state == "dropped":
            return f"{self.task} has let go of {n} without ack or fail"
        if self.state == "emitting":
            return f"{self.task} has not ended its group of emits"
        return f"{self.task} have not acked all that they were sent"


def sentences(holders: Sequence[Holder], most: int = 3) -> str:
    """Describe holders in words. Holders that point to an error in a bolt come first.

    >>> sentences([Holder("split[3]", "waiting", 2), Holder("count[7]", "held", 1, 29.21)])
    'count[7] has held 1 tuple for 29.2 s without ack or fail; 2 tuples wait in split[3]'
    """
    order = ("held", "dropped", "emitting", "waiting", "leaving", "elsewhere")
    ordered = sorted(holders, key=lambda holder: (order.index(holder.state), -holder.tuples, holder.task))
    more = f"; and {len(ordered) - most} more" if len(ordered) > most else ""
    return "; ".join(map(str, ordered[:most])) + more


@dataclass(frozen=True)
class Story:
    """Everything that is known of one tree. Times are in seconds after the tree's emit, or after the first event if the emit is
    unknown.

    ``outcome`` is None if the tree's home has left no line, because the tree is still open, or because the line was rotated
    away. ``traced`` says whether events were recorded while they happened. If not, the story has only the tree's end and
    ``holders``. ``replay_of`` is the root of an earlier, failed tree of the same message. ``untold`` is the number of earlier
    failures that have no story, because there were too many failures.
    """

    root: str
    outcome: str | None = None
    reason: str | None = None
    spout: str | None = None
    message_id: str | None = None
    seconds: float | None = None
    #: The time of the tree's end or, if that is unknown, of its last event, in seconds since 1970.
    ended: float = 0.0
    traced: bool = False
    replay_of: str | None = None
    events: tuple[StoryEvent, ...] = ()
    omitted: int = 0
    holders: tuple[Holder, ...] = ()
    hosts: tuple[str, ...] = ()
    untold: int = 0

    @property
    def why(self) -> str:
        """The reason why the tree failed. If the tree timed out, the text also names the holders of its tuples in all workers."""
        known = [holder for holder in self.holders if holder.state != "elsewhere"]
        holders = sentences(known or self.holders) if self.outcome == "timed out" else ""
        return ": ".join(part for part in (self.reason, holders) if part)

    @property
    def failed(self) -> bool:
        """Whether the tree failed, so that its spout's ``fail`` was called."""
        return self.outcome not in (None, "acked")

    def __str__(self) -> str:
        """Return one line, like that in the spout's log."""
        took = "" if self.seconds is None else f" after {self.seconds:,.3g} s"
        ending = (self.outcome or "no end is known") + took
        return f"message {self.message_id or '?'} of {self.spout or '?'} {ending}" + (
            f": {self.why}" if self.why else ""
        )


def root_text(root: int) -> str:
    """Format a root id as logs, files and commands show it.

    >>> root_text(0x1F)
    '000000000000001f'
    """
    return f"{root:016x}"


def read_stories(folder: str | Path) -> list[Story]:
    """Read the stories in a topology's log folder, newest first. Workers on other hosts write to folders on their own hosts.

    Incomplete lines are left out. A worker that is killed while it writes leaves such a line behind.
    """
    lines: list[Mapping[str, Any]] = []
    for path in Path(folder).glob("stories-*.jsonl*"):
        for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict) and "root" in line:
                lines.append(line)
    return merge_stories(lines)


def stories_of(stories: Iterable[Story], root: int | str) -> list[Story]:
    """Return the stories of ``root``: a root id, the beginning of a root id as a string, or a message id as a string.

    >>> [story.root for story in stories_of([Story("00ab"), Story("00cd", message_id="('t', 0, 7)")], "00a")]
    ['00ab']
    >>> [story.root for story in stories_of([Story("00ab"), Story("00cd", message_id="('t', 0, 7)")], "('t', 0, 7)")]
    ['00cd']
    """
    text = root_text(root) if isinstance(root, int) else root.lower().removeprefix("0x")
    return [story for story in stories if story.root.startswith(text) or story.message_id == root]


def merge_stories(lines: Iterable[Mapping[str, Any]]) -> list[Story]:
    """Merge ``lines``, which workers have written, into one story per root, newest first."""
    by_root: dict[str, dict[tuple[str, int], dict[str, Any]]] = defaultdict(dict)
    for line in sorted(lines, key=lambda line: line["epoch"] + line["at"]):
        place = by_root[line["root"]].setdefault((line["host"], line["worker"]), {})
        # A worker's later lines replace its earlier lines, except events and holders that the later line does not have. A worker
        # writes a line when its part of a tree is done, and another one when the tree's home asks for more.
        keep = {key: place[key] for key in ("events", "holders") if place.get(key) and not line.get(key)}
        place.update(line)
        place.update(keep)
    stories = [_story(root, list(places.values())) for root, places in by_root.items()]
    return sorted(stories, key=lambda story: story.ended, reverse=True)


def _story(root: str, places: list[dict[str, Any]]) -> Story:
    home = next((place for place in places if place.get("home")), None)
    first = home or places[0]
    facts = home["home"] if home else {}
    begin = facts.get("emitted_at")
    if begin is None:
        begin = min((event[0] for event in first.get("events", ())), default=first["at"])

    def since_begin(place: Mapping[str, Any], at: float | None) -> float | None:
        if at is None:
            return None
        if place["host"] == first["host"]:
            return float(at - begin)
        return float(place["epoch"] + at - first["epoch"] - begin)

    events = [
        StoryEvent(since_begin(place, at) or 0.0, what, by, to, tuples, since_begin(place, since))
        for place in places
        for at, what, by, to, tuples, since in place.get("events", ())
    ]
    return Story(
        root=root,
        outcome=facts.get("outcome"),
        reason=facts.get("reason"),
        spout=facts.get("spout"),
        message_id=facts.get("message_id"),
        seconds=since_begin(first, facts["ended_at"]) if home else None,
        ended=max(place["epoch"] + place["at"] for place in ([home] if home else places)),
        traced=any(place.get("events") for place in places),
        replay_of=facts.get("replay_of"),
        events=tuple(sorted(events, key=lambda event: event.at)),
        omitted=sum(place.get("omitted", 0) for place in places),
        holders=tuple(Holder(*holder) for place in places for holder in place.get("holders", ())),
        hosts=tuple(sorted({place["host"] for place in places})),
        untold=facts.get("untold", 0),
    )
