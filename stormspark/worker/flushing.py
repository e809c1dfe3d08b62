"""The end of the input in a worker: bolts flush what they hold when their turn comes; see `stormspark.plan.flushing`."""

from __future__ import annotations

from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.current_call import CurrentCall
from stormspark.worker.departures import Departures
from stormspark.worker.services import TaskServices
from stormspark.worker.step import Step
from stormspark.worker.wiring import Wiring

__all__ = ["Flushing"]


class Flushing:
    """The flushes of one worker."""

    def __init__(
        self,
        plan: PhysicalPlan,
        services: TaskServices,
        call: CurrentCall,
        departures: Departures,
        wiring: Wiring,
    ) -> None:
        self._turns, self._services, self._call = plan.flush_turns, services, call
        self._departures, self._bolts = departures, wiring.bolts

    def begin_round(self, step: Step) -> None:
        """Tell the bolts whether the input has ended. In the first round of a batch, let those flush whose turn it is."""
        orders = step.orders
        for bolt in self._bolts:
            bolt.input_ended = orders.input_ended
        if not orders.flushes or orders.round:
            return
        for bolt in self._bolts:
            if self._turns.get(bolt.component.id) == orders.flushes and bolt.fatal is None:
                self._call.enter(bolt)
                self._services.executing = bolt
                bolt.end_input()
                self._services.executing = None
                self._departures.seal_full(bolt)
        self._call.enter(None)
