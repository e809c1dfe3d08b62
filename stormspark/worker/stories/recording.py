"""The recording of a traced tree. It holds the events of the tree in one worker, and records them while they happen.

A *branch* is a tree in its home, or a tree's part in another worker. A traced branch calls its `Recording` whenever the
branch's count changes, and passes only the difference. The tuple path passes nothing more, because more would slow down the
trees that are not traced. The recording finds out by itself which task has acted, and which task receives a tuple. The task
that has acted is the one whose code the worker runs. The recording looks at the inboxes that this task can send to. The
receiver is the task whose inbox ends with the tuple.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from stormspark.acker import ACKED, Branch, Ledger, Outcome, TracedPart, Verdict
from stormspark.worker.bolts.queue import TupleQueue
from stormspark.worker.tuples.outlets import Delivery

__all__ = ["Inbox", "Recording", "Scene"]

#: The most events per tree and worker. Later events are only counted.
_MOST_EVENTS = 200


class Inbox(NamedTuple):
    """An inbox that a task can send to. ``task`` is the task that the inbox belongs to, and ``here`` says whether it is in this
    worker. Then ``queue`` is the task's queue, unless the task gets record batches.
    """

    task: str
    deliveries: list[Delivery]
    here: bool
    queue: TupleQueue | None = None

    @property
    def newest(self) -> Delivery | None:
        """The delivery that was appended last. The thread of an executor may have taken it out of the inbox already."""
        if self.queue is not None:
            return self.queue.newest
        return self.deliveries[-1] if self.deliveries else None


class _Seen(NamedTuple):
    """The newest delivery of an inbox, with the branches whose recordings have this delivery already."""

    inbox: Inbox
    newest: Delivery
    length: int
    branches: list[Branch]


class Scene:
    """What the recordings of a worker can see of it. All recordings of a worker share one such object.

    ``at`` returns the task whose code runs, and the time when the code began. ``inboxes`` returns the inboxes that a task can
    send to.
    """

    def __init__(
        self,
        worker: int,
        clock: Callable[[], float],
        at: Callable[[], tuple[str, float] | None],
        names: Mapping[int, str],
        inboxes: Callable[[str], Sequence[Inbox]],
    ) -> None:
        self.worker, self.clock, self.at, self.names = f"worker {worker}", clock, at, names
        self.ledger: Ledger
        #: The other worker, while a frame leaves for that worker or arrives from it.
        self.peer = -1
        #: The traced branches of the frame that is being unpacked.
        self.arriving: list[Branch] = []
        #: Recordings that will be written at the end of the superstep.
        self.done: dict[Recording, None] = {}
        self._find_inboxes = inboxes
        self._inboxes: dict[str, Sequence[Inbox]] = {}
        self._seen: dict[int, _Seen] = {}  # by the inbox's identity
        #: The receiver of the rows of a record batch, while they are being sent.
        self.sending: Inbox | None = None

    def newest_inbox(self, task: str, branch: Branch) -> Inbox | None:
        """Return the inbox to which ``task`` has just added a tuple of ``branch``."""
        if self.sending is not None:
            return self.sending
        inboxes = self._inboxes.get(task)
        if inboxes is None:
            inboxes = self._inboxes[task] = self._find_inboxes(task)
        for inbox in inboxes:
            newest = inbox.newest
            if newest is None:
                continue
            roots = newest[2]
            if roots is branch or (isinstance(roots, tuple) and branch in roots):
                deliveries = inbox.deliveries
                seen, length = self._seen.get(id(deliveries)), len(deliveries)
                if seen is None or seen.newest is not newest or length > seen.length:
                    self._seen[id(deliveries)] = _Seen(inbox, newest, length, [branch])
                    return inbox
                if branch not in seen.branches:
                    seen.branches.append(branch)
                    return inbox
        return None

    def tidy_up(self) -> None:
        """Forget deliveries that are no longer the newest in their inbox."""
        if self._seen:
            self._seen = {key: seen for key, seen in self._seen.items() if seen.inbox.newest is seen.newest}


class Recording:
    """The recording of one tree in this worker. It is the trace (`stormspark.acker.Trace`) of the tree, or of its part in this
    worker.
    """

    __slots__ = ("_failing", "_scene", "ended_at", "events", "home", "omitted", "open", "root_id")

    def __init__(self, scene: Scene, root_id: int, home: dict[str, Any] | None = None) -> None:
        self._scene = scene
        self.root_id = root_id
        #: The facts that only the tree's home knows, such as its spout; None for a part.
        self.home = home
        self.events: list[list[Any]] = []
        self.omitted = 0
        #: For each task of this worker, the number of tuples that it has got and has neither acked nor failed.
        self.open: Counter[str] = Counter()
        self.ended_at: float | None = None
        self._failing: str | None = None

    def changed(self, branch: Branch, by: int) -> None:
        """Record that edges were opened, closed, or moved between workers."""
        scene = self._scene
        if scene.ledger.moving < 0:
            self._note("sent", scene.worker, f"worker {scene.peer}", -by)
        elif scene.ledger.moving > 0:
            scene.arriving.append(branch)
        else:
            at = scene.at()
            task, since = at if at is not None else (scene.worker, None)
            if by > 0:
                inbox = scene.newest_inbox(task, branch)
                if inbox is None:
                    self.open[task] += by  # the edge of a group of emits, which belongs to no tuple
                else:
                    if inbox.here:
                        self.open[inbox.task] += by
                    self._note("emitted" if inbox.here else "emitted_away", task, inbox.task, by)
            else:
                self.open[task] += by
                if self._failing == task:
                    self._failing = None
                else:
                    self._note("acked", task, None, -by, since)
        if not branch.count and isinstance(branch, TracedPart):
            scene.done[self] = None

    def arrived(self, task: int, tuples: int) -> None:
        """Record that a frame has brought tuples for a task of this worker."""
        name = self._scene.names[task]
        self.open[name] += tuples
        self._note("received", f"worker {self._scene.peer}", name, tuples)

    def ended(self, branch: Branch, verdict: Verdict) -> None:
        """Record that the tree has ended at its home, or that a bolt of this worker has failed its part."""
        scene = self._scene
        at = scene.at()
        if (
            verdict.outcome is Outcome.FAILED
            and at is not None
            and at[0] == scene.names.get(verdict.task or 0)
        ):
            self._failing = at[0]  # the next change closes the failed tuple's edge
            self._note("failed", at[0], None, 1, at[1])
        if not isinstance(branch, TracedPart):
            self.ended_at = scene.clock()
            if verdict is ACKED:
                scene.done[self] = None

    def _note(self, kind: str, by: str, to: str | None, tuples: int, since: float | None = None) -> None:
        events = self.events
        if events and events[-1][1:4] == [kind, by, to] and events[-1][5] == since:
            events[-1][4] += tuples  # one event for several tuples in a row
        elif len(events) < _MOST_EVENTS:
            events.append([self._scene.clock(), kind, by, to, tuples, since])
        else:
            self.omitted += tuples
