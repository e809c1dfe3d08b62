"""Stories of tuples that an executor's thread takes out of its inbox at once (W6)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stormspark.acker import SpoutAccount, TracedTree
from stormspark.worker.executors.queue import SharedQueue
from stormspark.worker.stories.recording import Inbox, Recording, Scene


@pytest.mark.parametrize("taken", [False, True])
def test_an_emit_is_in_the_story_although_a_thread_has_taken_the_tuple(taken: bool) -> None:
    """The thread may do so before the worker's thread counts the tuple."""
    queues = [SharedQueue(), SharedQueue()]
    inboxes = [Inbox(f"b[{n}]", queue.inbox, True, queue) for n, queue in enumerate(queues)]
    scene = Scene(0, lambda: 1.0, lambda: ("a[0]", 0.5), {}, lambda task: inboxes)
    ledger: Any = SimpleNamespace(moving=0)
    scene.ledger = ledger
    recording = Recording(scene, 1, {})
    tree = TracedTree(SpoutAccount(1), "m", 0.0, recording)
    for number in (0, 1, 1, 0):
        queues[number].inbox.append((("x",), None, tree))  # type: ignore[arg-type]
        if taken:
            queues[number].next(lambda delivery: delivery)
        tree.count += 1
        scene.tidy_up()
    emitted = [(by, to, tuples) for _, what, by, to, tuples, _ in recording.events if what == "emitted"]
    assert emitted == [("a[0]", "b[0]", 1), ("a[0]", "b[1]", 2), ("a[0]", "b[0]", 1)]
    assert recording.open == {"b[0]": 2, "b[1]": 2}
