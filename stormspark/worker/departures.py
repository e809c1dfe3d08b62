"""The exit of a worker. Deliveries for other workers wait in lanes, and this module seals lanes into frames."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable

from stormspark.acker import Ledger, Roots
from stormspark.plan.physical import PhysicalPlan
from stormspark.wire.frames import Frame, FrameKind
from stormspark.worker.stories.stories import Stories
from stormspark.worker.task import Task
from stormspark.worker.tuples.lanes import Lanes
from stormspark.worker.vectorised.lanes import BatchLanes

__all__ = ["FRAME_BYTES", "Departures"]

#: Lanes are sealed into a frame at about this size, so that no frame is huge and tuples do not pile up as objects.
_FRAME_TUPLES = 512
FRAME_BYTES = 4 * 1024 * 1024


class Departures:
    """The exit of worker ``index``.

    If tuples can't be packed, ``unsent`` is called with their sender, their trees and the reason.
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        index: int,
        ledger: Ledger,
        stories: Stories,
        unsent: Callable[[int, Iterable[Roots], str], None],
    ) -> None:
        self._index, self._ledger, self._scene = index, ledger, stories.scene
        others = [worker for worker in range(plan.workers) if worker != index]
        most = plan.settings.tuple_max_bytes
        self.lanes = {worker: Lanes(worker, ledger, unsent, FRAME_BYTES, most) for worker in others}
        #: The lanes for record batches, if the topology has vectorised components.
        vectorised = any(component.vectorised for component in plan.components.values())
        self.batch_lanes = {
            worker: BatchLanes(worker, ledger, unsent, FRAME_BYTES, most)
            for worker in (others if vectorised else ())
        }
        self.all_lanes: list[Lanes | BatchLanes] = [*self.lanes.values(), *self.batch_lanes.values()]
        #: Sealed frames that wait for the end of the superstep.
        self.sealed: list[Frame] = []
        #: How many tuples, rows and acks these frames hold (`sealed_count`), and how many bytes (`sealed_bytes`).
        self.sealed_count = self.sealed_bytes = 0
        self._sequence = 0

    def seal_full(self, emitter: Task | None = None) -> None:
        """Make frames of lanes that hold enough tuples or bytes.

        ``emitter`` is the only task that has emitted since the last call. If it is None, any task may have emitted.
        """
        for lanes in self.lanes.values():
            if lanes.is_full(_FRAME_TUPLES, FRAME_BYTES, None if emitter is None else emitter.id):
                self._seal(lanes)
        for batches in self.batch_lanes.values():
            if batches.bytes >= FRAME_BYTES:
                self._seal_batches(batches)

    def seal_all(self) -> None:
        """Make frames of everything that waits in lanes."""
        for lanes in self.lanes.values():
            self._seal(lanes)
        for batches in self.batch_lanes.values():
            self._seal_batches(batches)

    def _seal(self, lanes: Lanes) -> None:
        self._scene.peer = lanes.worker
        for tuples, payload in lanes.seal():
            self.add(lanes.worker, FrameKind.TUPLES, tuples, payload)

    def _seal_batches(self, lanes: BatchLanes) -> None:
        self._scene.peer = lanes.worker
        for rows, payload in lanes.seal():
            self.add(lanes.worker, FrameKind.BATCHES, rows, payload)

    def add(self, worker: int, kind: FrameKind, count: int, payload: bytes) -> None:
        """Add a frame for another worker, behind the frames that already wait."""
        self.sealed.append(Frame(worker, kind, self._index, self._sequence, count, payload))
        self.sealed_count += count
        self.sealed_bytes += len(payload)
        self._sequence += 1

    def complete(self) -> None:
        """Make frames of everything that waits. Acks, fails and parts of trees come last."""
        self.seal_all()
        # Parts come after the tuples, because `seal_all` changes them: it may bring a part's count to zero, and may fail tuples
        # that can't be pickled.
        for home, parts in self._ledger.parts_to_send.items():
            self.add(home, FrameKind.ACKS, len(parts), pickle.dumps(parts, 5))
        self._ledger.parts_to_send.clear()

    def hand_out(self) -> list[Frame]:
        """Return the sealed frames, in order, and keep none of them."""
        frames, self.sealed = self.sealed, []
        self.sealed_count = self.sealed_bytes = 0
        return frames

    def clear(self) -> None:
        """Drop all tuples and frames that wait, because their batch runs again."""
        for lanes in self.all_lanes:
            lanes.clear()
        self.sealed, self.sealed_count, self.sealed_bytes = [], 0, 0

    @property
    def waiting(self) -> int:
        """How many tuples and rows wait in lanes, plus everything that sealed frames hold (tuples, rows, acks)."""
        return sum(map(len, self.all_lanes)) + self.sealed_count

    def waiting_by_task(self) -> Counter[int]:
        """Count the tuples and rows in lanes by target task."""
        by_task: Counter[int] = Counter()
        for lanes in self.all_lanes:
            by_task.update(lanes.waiting())
        return by_task
