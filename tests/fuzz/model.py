"""What must come of a random topology: no workers, no queues, no acker; tuples are counted, not sent."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stormspark.grouping import AllGrouping
from tests.fuzz.spec import BoltSpec, FirstAndLast, Input, Message, SpoutSpec, TopologySpec, message_id

__all__ = ["Foretold", "foretell"]


@dataclass(frozen=True)
class Foretold:
    """Executions by (bolt, messages, round), and verdicts by message id."""

    executed: Counter[tuple[str, str, int]]
    #: Those of them that an ack promises: of tuples that are anchored all the way to a message with an id (E23).
    promised: Counter[tuple[str, str, int]]
    verdicts: dict[str, Counter[str]]
    #: The messages that are emitted under each id.
    messages: dict[str, list[Message]]


@dataclass(frozen=True)
class _Tuples:
    """So many alike, emitted on a stream: of some messages, anchored to some of them."""

    source: str
    stream: str
    messages: tuple[Message, ...]
    roots: frozenset[Message]
    turn: int = 0
    count: int = 1
    consumer: str | None = None  # a direct emit to one subscriber


def foretell(spec: TopologySpec, messages: Iterable[Message]) -> Foretold:
    """What becomes of ``messages``, those that spouts have emitted."""
    spouts = {spout.name: spout for spout in spec.spouts}
    executed: Counter[tuple[str, str, int]] = Counter()
    promised: Counter[tuple[str, str, int]] = Counter()
    verdicts: dict[str, Counter[str]] = {}
    by_id: dict[str, list[Message]] = {}
    failed: set[Message] = set()
    under_way: deque[_Tuples] = deque()
    messages = sorted(messages)
    for message in messages:
        under_way.extend(_emitted(spec, spouts[message[0]], message))
    joined: dict[tuple[str, int], _Tuples] = {}
    while under_way:
        these = under_way.popleft()
        number = these.messages[0][2]
        for bolt, one in _subscribers(spec, these):
            came = these.count * _copies(one, bolt, number)
            if not came:
                continue
            key = bolt.name, json.dumps(these.messages), these.turn
            executed[key] += came
            promised[key] += came if these.roots else 0
            if bolt.acks == "join":
                partner = joined.pop((bolt.name, number), None)
                if partner is None:
                    joined[bolt.name, number] = these
                else:
                    both = tuple(sorted([*partner.messages, *these.messages]))
                    under_way.append(_Tuples(bolt.name, "default", both, partner.roots | these.roots))
                continue
            if number in bolt.fails:
                failed |= these.roots
            children = these.roots if bolt.anchored else frozenset()
            for stream, copies in bolt.fan_out.items():
                if copies:
                    out = _Tuples(bolt.name, stream, these.messages, children, these.turn, came * copies)
                    under_way.append(out)
            if bolt.loop is not None and these.turn < bolt.rounds:
                round = _Tuples(bolt.name, "loop", these.messages, children, these.turn + 1, came)
                under_way.append(round)
    for message in messages:
        kind = spouts[message[0]].kind
        if kind != "unreliable":
            id = message_id(kind, message)
            verdicts.setdefault(id, Counter())["FAILED" if message in failed else "ACKED"] += 1
            by_id.setdefault(id, []).append(message)
    return Foretold(executed, promised, verdicts, by_id)


def _emitted(spec: TopologySpec, spout: SpoutSpec, message: Message) -> Iterator[_Tuples]:
    """The tuples of a message."""
    tracked = spec.acking and spout.kind != "unreliable"
    roots = frozenset([message] if tracked else [])
    if spout.kind == "direct":
        listeners = [
            b.name for b in spec.bolts for i in b.inputs if (i.source, i.stream) == (spout.name, "direct")
        ]
        if listeners:
            yield _Tuples(spout.name, "direct", (message,), roots, consumer=min(listeners))
    elif spout.kind == "group":
        yield _Tuples(spout.name, "default", (message,), roots, count=2)
        yield _Tuples(spout.name, "side", (message,), roots)
        yield _Tuples(spout.name, "direct", (message,), roots)
    else:
        yield _Tuples(spout.name, "default", (message,), roots)


def _subscribers(spec: TopologySpec, these: _Tuples) -> Iterator[tuple[BoltSpec, Input]]:
    for bolt in spec.bolts:
        for one in bolt.inputs:
            if (one.source, one.stream) == (these.source, these.stream) and these.consumer in (
                None,
                bolt.name,
            ):
                yield bolt, one


def _copies(one: Input, bolt: BoltSpec, number: int) -> int:
    """How many tasks of the bolt a tuple goes to."""
    if isinstance(one.grouping, AllGrouping):
        return bolt.tasks
    if isinstance(one.grouping, FirstAndLast):
        return 0 if one.grouping.drops and number % 2 else min(2, bolt.tasks)
    return 1
