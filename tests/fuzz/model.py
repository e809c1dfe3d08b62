"""What must come of a random topology: no workers, no queues, no acker; tuples are counted, not sent."""

from __future__ import annotations

import json
from collections import Counter, deque
from dataclasses import dataclass

from stormspark.grouping import AllGrouping
from tests.fuzz.components import Message
from tests.fuzz.spec import BoltSpec, FirstAndLast, Input, TopologySpec

__all__ = ["Foretold", "foretell"]


@dataclass(frozen=True)
class Foretold:
    """Executions by (bolt, messages, round), and for each message with an id whether it fails."""

    executed: Counter[tuple[str, str, int]]
    #: Those of them that an ack promises: of tuples that are anchored all the way to a message with an id (E23).
    promised: Counter[tuple[str, str, int]]
    fails: dict[str, bool]


def foretell(spec: TopologySpec, messages: set[str]) -> Foretold:
    """What becomes of ``messages``, those that spouts have emitted."""
    spouts = {spout.name: spout for spout in spec.spouts}
    all_messages: list[Message] = [tuple(json.loads(message)) for message in messages]  # type: ignore[misc]
    executed: Counter[tuple[str, str, int]] = Counter()
    promised: Counter[tuple[str, str, int]] = Counter()
    tracked = {message: spouts[message[0]].kind != "unreliable" for message in all_messages}
    failed: set[Message] = set()
    # (component, stream, messages, those of them that the tuple is anchored to, round, number of such tuples)
    under_way: deque[tuple[str, str, tuple[Message, ...], frozenset[Message], int, int]] = deque()
    for message in all_messages:
        roots = frozenset([message] if tracked[message] else [])
        grouped = spouts[message[0]].kind == "group"
        under_way.append((message[0], "default", (message,), roots, 0, 2 if grouped else 1))
        if grouped:
            under_way.append((message[0], "side", (message,), roots, 0, 1))
    joined: dict[tuple[str, int], tuple[tuple[Message, ...], frozenset[Message]]] = {}
    while under_way:
        source, stream, of, roots, turn, count = under_way.popleft()
        number = of[0][2]
        for bolt in spec.bolts:
            for one in bolt.inputs:
                if (one.source, one.stream) != (source, stream):
                    continue
                came = count * _copies(one, bolt, number)
                if not came:
                    continue
                executed[bolt.name, json.dumps(of), turn] += came
                promised[bolt.name, json.dumps(of), turn] += came if roots else 0
                if bolt.acks == "join":
                    partner = joined.pop((bolt.name, number), None)
                    if partner is None:
                        joined[bolt.name, number] = (of, roots)
                        continue
                    both = tuple(sorted([*partner[0], *of]))
                    under_way.append((bolt.name, "default", both, partner[1] | roots, 0, 1))
                    continue
                if number in bolt.fails:
                    failed |= roots
                children = roots if bolt.anchored else frozenset()
                for out, copies in bolt.fan_out.items():
                    if copies:
                        under_way.append((bolt.name, out, of, children, turn, came * copies))
                if bolt.loop is not None and turn < bolt.rounds:
                    under_way.append((bolt.name, "loop", of, children, turn + 1, came))
    return Foretold(
        executed,
        promised,
        {json.dumps(message): message in failed for message in all_messages if tracked[message]},
    )


def _copies(one: Input, bolt: BoltSpec, number: int) -> int:
    """How many tasks of the bolt a tuple goes to."""
    if isinstance(one.grouping, AllGrouping):
        return bolt.tasks
    if isinstance(one.grouping, FirstAndLast):
        return 0 if one.grouping.drops and number % 2 else min(2, bolt.tasks)
    return 1
