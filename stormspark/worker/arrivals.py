"""The entry of a worker, through which frames of other workers and rows of sources come in."""

from __future__ import annotations

import pickle
from collections.abc import Iterable

from stormspark.acker import Ledger
from stormspark.api import TupleSource
from stormspark.extras import pyarrow as pa
from stormspark.plan.physical import PhysicalPlan
from stormspark.wire.frames import Frame, FrameKind
from stormspark.worker.current_call import CurrentCall
from stormspark.worker.departures import Departures
from stormspark.worker.loads import Loads
from stormspark.worker.refusals import Refusals
from stormspark.worker.spout_task import SpoutTask
from stormspark.worker.stories.stories import Stories
from stormspark.worker.transactions import WorkerTransaction
from stormspark.worker.tuples.unpacking import unpack
from stormspark.worker.vectorised.lanes import unpack_batches
from stormspark.worker.wiring import Wiring

__all__ = ["Arrivals"]


class Arrivals:
    """The entry of one worker. It unpacks each frame, and gives the content to the tasks, the ledger or the transaction."""

    def __init__(
        self,
        plan: PhysicalPlan,
        wiring: Wiring,
        ledger: Ledger,
        stories: Stories,
        call: CurrentCall,
        refusals: Refusals,
        departures: Departures,
        loads: Loads,
        transaction: WorkerTransaction,
    ) -> None:
        self._plan, self._wiring, self._ledger, self._scene = plan, wiring, ledger, stories.scene
        self._call, self._refusals, self._transaction = call, refusals, transaction
        self._departures, self._loads = departures, loads

    def take(self, frame: Frame, batch: int) -> None:
        """Take in one frame of batch ``batch``. Do nothing with a frame of loads, because `refresh_loads` takes it."""
        wiring, ledger, scene = self._wiring, self._ledger, self._scene
        if frame.kind == FrameKind.TUPLES:
            scene.peer = frame.sender
            # Unpickling runs code of users' classes, which may never return.
            self._call.enter_other(f"a class that it unpickles, of a tuple from worker {frame.sender},")
            unpack(
                frame.payload, ledger, wiring.sources, wiring.inboxes, scene.arriving, self._refusals.refuse
            )
            self._call.enter_other(None)
        elif frame.kind == FrameKind.BATCHES:
            scene.peer = frame.sender
            unpack_batches(
                frame.payload, ledger, wiring.sources, self._schema_of, wiring.receivers, scene.arriving
            )
        elif frame.kind == FrameKind.ROWS:
            task = wiring.tasks[frame.sender]
            assert isinstance(task, SpoutTask), task.name
            task.take_rows(batch, frame.sequence, frame.payload)
        elif frame.kind == FrameKind.ACKS:
            ledger.take_parts(pickle.loads(frame.payload))
        elif frame.kind == FrameKind.UNSETTLED:
            self._transaction.take_unsettled(frame)

    def _schema_of(self, source: TupleSource) -> pa.Schema:
        return self._plan.components[source.component].streams[source.stream].schema

    def refresh_loads(self, frames: Iterable[Frame]) -> None:
        """Give the current loads to the choosers that follow load (D6). Call this before `take`."""
        if not self._loads.followed:
            return
        for frame in frames:
            if frame.kind == FrameKind.LOADS:
                self._loads.take(frame.payload)
        self._loads.refresh(self._wiring.waiting_for, self._departures.waiting_by_task())
