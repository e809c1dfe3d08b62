"""Reads the sources of source spouts for the local engine, and gives the rows to the spouts' tasks, as Spark would."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from stormspark.api import FiniteLocalSource, LocalSource, SourceProgress, SourceSpout
from stormspark.driver.source_lag import Lags, PartitionLag, lag_between
from stormspark.errors import ComponentError, InvalidTopologyError
from stormspark.local.supersteps import InProcessWorkers
from stormspark.pickling import unpickled
from stormspark.plan.physical import ComponentPlan, PhysicalPlan
from stormspark.worker.step import merge_progress

__all__ = ["LocalSources"]

_log = logging.getLogger(__name__)


@runtime_checkable
class KnowsEnds(Protocol):
    """A source that knows how far it is behind."""

    def positions(self) -> tuple[Any, Any]:
        """Return the positions up to which rows were handed out, and those of the ends; see `lag_between`."""


@dataclass(frozen=True)
class _Opened:
    component: ComponentPlan
    source: LocalSource


class LocalSources:
    """The opened sources of a topology's source spouts.

    With ``available_now`` only the rows are read that the sources have at the start.

    Making the object raises `InvalidTopologyError` if a spout has no source that can be read without Spark, or can't open its
    source.
    """

    def __init__(self, plan: PhysicalPlan, *, available_now: bool = False) -> None:
        self._sources: list[_Opened] = []
        try:
            for component in plan.sources:
                source = _open(component)
                self._sources.append(_Opened(component, source))
                if available_now and isinstance(source, FiniteLocalSource):
                    source.prepare_available_now()
        except BaseException:
            self.close()
            raise

    @property
    def are_done(self) -> bool:
        """Whether no source says that it has more rows."""
        known = [one.source for one in self._sources if isinstance(one.source, FiniteLocalSource)]
        return all(source.is_done() for source in known)

    def feed(self, workers: InProcessWorkers) -> None:
        """Give the tasks the rows that have arrived. Raises `ComponentError` if a source raises."""
        for component, source in ((one.component, one.source) for one in self._sources):
            try:
                for partition, rows in source.poll():
                    task = component.tasks[partition % len(component.tasks)]
                    workers.add_rows(task, partition, rows)
            except Exception as error:
                msg = f"{component.place}: its source raised {type(error).__name__}: {error}"
                raise ComponentError(msg) from error

    def observe(
        self, reported: Iterable[Mapping[str, SourceProgress]], limit_of: Callable[[str], int | None]
    ) -> None:
        """Tell each source how far its tasks in all workers have come, and how much the tasks may emit next."""
        if not self._sources:
            return
        progress = merge_progress(reported)
        for one in self._sources:
            component = one.component.id
            one.source.told(progress[component]._replace(limit=limit_of(component)))

    def lags(self) -> Lags:
        """Return how far the sources that know their ends are behind."""
        found: dict[str, Mapping[str, Mapping[str, PartitionLag]]] = {}
        for one in self._sources:
            if isinstance(one.source, KnowsEnds) and (lags := lag_between(*one.source.positions())):
                found[one.component.id] = lags
        return found

    def close(self) -> None:
        """Close the sources at the end of the topology."""
        for one in self._sources:
            try:
                one.source.close()
            except Exception:
                _log.exception("%s: its source could not be closed", one.component.place)


def _open(component: ComponentPlan) -> LocalSource:
    spout: SourceSpout = unpickled(component.pickled)
    try:
        source = spout.local_source()
    except InvalidTopologyError as error:
        msg = f"{component.place}: {error}"
        raise InvalidTopologyError(msg) from error
    if source is None:
        msg = (
            f"{component.place} can be read only by Spark: run the topology on Spark, or give complete_topology mocked tuples "
            f"for it"
        )
        raise InvalidTopologyError(msg)
    return source
