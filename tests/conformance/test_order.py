"""E31 on every engine: what one task sends to another one arrives in that order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from stormspark import Fields, TopologyBuilder
from tests.conformance.order_components import STREAMS, Relays, Sees, Sends

Run = Callable[..., Any]

_SMALL = {
    # A superstep, a batch and the spouts' turn all end in the middle of something.
    "stormspark.superstep.deadline.ms": 4,
    "stormspark.batch.target.ms": 100,
}


@pytest.mark.slow
def test_order_is_kept_over_streams_groupings_supersteps_and_batches(run: Run) -> None:
    """E31, F4: from spouts and from bolts, by every grouping, with what is left over from one turn to the next."""
    numbers = 2000
    builder = TopologyBuilder()
    builder.set_spout("sends", Sends(numbers, "relays"), 2)
    relays = builder.set_bolt("relays", Relays("sees"), 3)
    sees = builder.set_bolt("sees", Sees(), 2)
    for declarer, source in ((relays, "sends"), (sees, "relays")):
        declarer.shuffle_grouping(source, "shuffled").fields_grouping(source, Fields("key"), "keyed")
        declarer.all_grouping(source, "all").direct_grouping(source, "told")
    done = run(builder.create_topology("order"), _SMALL)

    sent = {"relays": Counter(n for _ in range(2) for n in range(numbers))}
    executed = by_sender("relays", done)
    # All relays together have sent as many as they saw, each its own 0, 1, 2 and so on.
    own = [sum(map(len, of_task.values())) for of_task in executed]
    sent["sees"] = Counter(n for count in own for n in range(count))
    for component, tasks in (("relays", 3), ("sees", 2)):
        seen = by_sender(component, done)
        assert len(seen) == tasks
        for of_task in seen:
            for numbers_seen in of_task.values():
                assert numbers_seen == sorted(set(numbers_seen)), "in order, each once"
        arrived = Counter(n for of_task in seen for numbers_seen in of_task.values() for n in numbers_seen)
        assert arrived == Counter(
            {n: times * (tasks if is_for_all(n) else 1) for n, times in sent[component].items()}
        )
    assert {stream for _, _, stream, *_ in done.effects("sees")} == set(STREAMS)
    assert done.statistics.components["sends"].acked == 2 * numbers


def is_for_all(number: int) -> bool:
    return STREAMS[number % 7 % len(STREAMS)] == "all"


def by_sender(component: str, done: Any) -> list[dict[int, list[int]]]:
    """For each task of a component, what it saw of each sender."""
    tasks = []
    for effects in done.effects_by_task(component):
        seen: dict[int, list[int]] = defaultdict(list)
        for sender, number, _ in effects:
            seen[sender].append(number)
        tasks.append(dict(seen))
    return tasks
