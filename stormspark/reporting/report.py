"""What a reporter gets each time: all families, and their samples under the names that Storm gives to metrics of version 2."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from stormspark.reporting.family import PREFIX, Distribution, Family
from stormspark.reporting.measured import Measured
from stormspark.reporting.places import FIRST_PORT, Hosts

__all__ = ["FlatSample", "Report"]

_ODD = re.compile(r"[^\w-]+", re.ASCII)
#: The labels that have a place of their own in a name.
_PLACED = ("topology", "component", "task")


class FlatSample(NamedTuple):
    """A sample whose labels are in its name. ``kind`` is ``counter`` or ``gauge``."""

    name: str
    kind: str
    value: float


class Report:
    """All families at one time. ``at`` is in seconds since 1970."""

    def __init__(self, measured: Measured, hosts: Hosts, families: Sequence[Family], at: float) -> None:
        self.families, self.at = families, at
        self.storm_id, self.topology = measured.storm_id, measured.plan.topology
        hosts.look()
        #: By task: the host and the port of its worker.
        self._places: Mapping[str, tuple[str, str]] = {
            str(task.id): (hosts.of(task.worker) or "unknown", str(FIRST_PORT + task.worker))
            for task in measured.plan.tasks.values()
        }
        self._indices = {str(task.id): task.index for task in measured.plan.tasks.values()}
        self._driver = socket.gethostname()

    def flat(self, takes: Callable[[str], Any] = bool) -> Iterator[FlatSample]:
        """Yield the samples that ``takes`` wants by their names: ``storm.topology.ID.HOST.COMPONENT.TASK.PORT-NAME``.

        What is about no single task has the driver's host, the task ``all``, the port ``driver``, and, if it is about no
        component either, the component ``__system``. Further labels follow the name. What names may not have becomes ``_``.
        """
        for _, sample in self.series(takes):
            yield sample

    def series(self, takes: Callable[[str], Any] = bool) -> Iterator[tuple[Hashable, FlatSample]]:
        """Yield the samples of `flat`, each with a key for what is added up in it.

        The key stays when the sample's name changes, because a worker has moved or because a rebalance has given a task another
        id: the task then goes on with its totals.
        """
        for family in self.families:
            for labels, value in family.samples:
                name = self._name(family, labels)
                if not takes(name):
                    continue
                index = self._indices.get(labels.get("task", ""))
                key = (
                    family.name,
                    index,
                    *((label, text) for label, text in labels.items() if label != "task"),
                )
                if isinstance(value, Distribution):
                    yield (*key, "count"), FlatSample(f"{name}.count", "counter", value.total)
                    yield (*key, "sum"), FlatSample(f"{name}.sum", "counter", value.seconds)
                    for share, seconds in value.percentiles.items():
                        yield (*key, share), FlatSample(f"{name}.{share}", "gauge", seconds)
                else:
                    yield key, FlatSample(name, family.kind, value)

    def _name(self, family: Family, labels: Mapping[str, str]) -> str:
        task = labels.get("task") or "all"
        host, port = self._places.get(task, (self._driver, "driver"))
        parts = ("storm", "topology", self.storm_id, host, labels.get("component", "__system"), task)
        named = [family.name.removeprefix(PREFIX).removesuffix("_total")]
        if named == ["user_metric"]:  # it has the user's own name
            named = []
        named += [value for label, value in labels.items() if label not in _PLACED and value]
        return f"{'.'.join(map(_clean, parts))}.{port}-{'.'.join(map(_clean, named))}"


def _clean(part: str) -> str:
    return _ODD.sub("_", part)[:200]
