"""In which order frames leave a worker."""

from __future__ import annotations

from stormspark.local import InProcessWorkers, SimulatedClock
from stormspark.plan import plan_topology
from stormspark.wire.frames import FrameKind
from stormspark.worker.step import Step
from tests.unit.worker.components import Collect, Script
from tests.unit.worker.rig import two


def test_loads_leave_behind_tuples() -> None:
    """The receiver walks over its bolts once per frame: for loads that is in vain, so first it has the tuples."""
    builder = two(Collect(), Script([]))
    conf = {"topology.workers": 2, "topology.disable.loadaware.messaging": False}
    cluster = InProcessWorkers(plan_topology(builder.create_topology("order"), conf), SimulatedClock())
    worker = cluster.workers[0]
    worker._loads.listeners = [1]
    worker.ledger.parts_to_send[1] = []  # type: ignore[assignment]
    kinds = [frame.kind for frame in worker.run(Step(0, 0, 0), [])]
    assert kinds == [FrameKind.ACKS, FrameKind.LOADS]
