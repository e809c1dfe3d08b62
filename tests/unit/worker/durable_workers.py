"""A topology's workers in this process whose batches are committed to a state table on disk, as on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from stormspark import Topology
from stormspark.checkpoint.batch_commits import BatchCommits
from stormspark.checkpoint.drivers_state_table import DriversStateTable
from stormspark.checkpoint.state_files import ChangedRows, FileDescription
from stormspark.local import InProcessWorkers, SimulatedClock
from stormspark.plan import plan_topology
from stormspark.spark.state_hand_over import StateHandOver
from stormspark.worker.core import Worker
from stormspark.worker.state.batch_state import StateAccess
from stormspark.worker.step import WorkerReport, fatal_error


class DurableWorkers(InProcessWorkers):
    """One life of a driver: the next one is another object on the same folder, with the next generation.

    It begins at ``began`` of its clock. Where ``by_driver``, workers do not see the folder.
    ``cores`` are those that the engine offers.
    """

    def __init__(
        self,
        topology: Topology,
        folder: Path,
        conf: dict[str, Any],
        generation: int = 0,
        began: float = 0.0,
        by_driver: bool = False,
        cores: int | None = None,
    ) -> None:
        plan = plan_topology(topology, conf, cores=cores)
        clock = SimulatedClock()
        clock.advance(began)
        super().__init__(plan, clock, Random(5))
        self.clock = clock
        table = DriversStateTable(folder) if by_driver else None
        self.commits = BatchCommits(plan, str(folder), generation, table=table)
        table_there = (folder / "_delta_log").exists()
        self.commits.open(_last(folder) if table_there else -1)
        access = StateAccess(self.commits.location, generation, self.commits.last)
        handed = [""] * plan.workers
        if table is not None:
            access = access._replace(location="/not/to/be/seen", by_driver=True)
            handed = _handed(StateHandOver(plan, table, folder), folder, plan.workers)
        self.workers = [
            Worker(
                plan,
                index,
                clock=clock,
                epoch=0.0,
                random=Random(index),
                state=access._replace(handed=handed[index]),
            )
            for index in range(plan.workers)
        ]
        self._batch = self.commits.last + 1
        self._committed = self.commits.last
        self.open()

    def _transact(self) -> Sequence[WorkerReport]:
        reports = super()._transact()
        fatal = fatal_error(reports)
        if fatal is not None:
            raise fatal
        return reports

    def commit(self, batch: int, files: Sequence[FileDescription | ChangedRows | None]) -> None:
        """Commit the batch to the table."""
        super().commit(batch, files)
        self.commits.commit(batch, files)

    def state(self, component: str) -> dict[Any, Any]:
        """What the tasks of a component have now, together; no key may be with two of them."""
        together: dict[Any, Any] = {}
        for worker in self.workers:
            for task in worker.tasks.values():
                if task.component.id == component:
                    assert task.state is not None
                    mine = dict(task.state.store)
                    assert not set(mine) & set(together), "a key is with two tasks"
                    together |= mine
        return together


def _handed(hand_over: StateHandOver, folder: Path, workers: int) -> list[str]:
    """What workers take from the driver, as their process writes it to a file."""
    hand_over.read(range(workers))
    files = [folder / f"taken-by-{worker}" for worker in range(workers)]
    for worker, file in enumerate(files):
        file.write_bytes(b"".join(hand_over.parts(worker)))
    return [str(file) for file in files]


def _last(folder: Path) -> int:
    from stormspark.checkpoint.state_table import StateTable

    table = StateTable(folder)
    table.refresh()
    return table.last_txid
