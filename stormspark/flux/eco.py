"""Handles the settings that only Heron's ECO files have, such as the resources of components (K22)."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stormspark.api.component_configuration import ComponentConfiguration
from stormspark.errors import InvalidTopologyError

__all__ = ["Resources", "taken_out"]

_log = logging.getLogger("stormspark.flux")

_RESOURCES = "topology.component.resourcemap"
_JVM_OPTIONS = "topology.component.jvmoptions"
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", re.IGNORECASE)
_MB = {"": 2.0**-20, "K": 2.0**-10, "M": 1.0, "G": 2.0**10, "T": 2.0**20}


@dataclass(frozen=True)
class Resources:
    """The resources that a component requests. stormspark keeps them in the topology, but they have no effect (A9)."""

    ram_mb: float | None = None
    cpu: float | None = None

    def apply(self, declarer: ComponentConfiguration) -> None:
        """Declare the resources in Storm's units: memory in megabytes, and CPU in percent of a core."""
        if self.ram_mb is not None:
            declarer.set_memory_load(self.ram_mb)
        if self.cpu is not None:
            declarer.set_cpu_load(100 * self.cpu)


def taken_out(conf: Mapping[str, Any]) -> tuple[dict[str, Resources], dict[str, Any]]:
    """Take the two settings that only Heron has out of a configuration: resources and JVM options.

    Returns the resources of each component, and all other settings. For JVM options, a warning says that they have no effect.

    >>> taken_out({"topology.component.resourcemap": [{"id": "count", "ram": "1GB", "cpu": 0.5}], "mine": 1})
    ({'count': Resources(ram_mb=1024.0, cpu=0.5)}, {'mine': 1})
    """
    rest = dict(conf)
    resources = {}
    for one in rest.pop(_RESOURCES, None) or []:
        if not isinstance(one, Mapping) or "id" not in one:
            msg = f"{_RESOURCES} must be a list of mappings with an id, ram, cpu and disk, got {one!r}"
            raise InvalidTopologyError(msg)
        cpu = one.get("cpu")
        if cpu is not None and (isinstance(cpu, bool) or not isinstance(cpu, int | float)):
            msg = f"{_RESOURCES}: the cpu of {one['id']!r} must be a number of cores, got {cpu!r}"
            raise InvalidTopologyError(msg)
        resources[str(one["id"])] = Resources(_megabytes(one.get("ram"), str(one["id"])), cpu)
    if rest.pop(_JVM_OPTIONS, None) is not None:
        _log.warning("%s changes nothing here: components are Python", _JVM_OPTIONS)
    return resources, rest


def _megabytes(amount: object, component: str) -> float | None:
    if amount is None:
        return None
    found = _AMOUNT.fullmatch(str(amount).strip())
    if found is None:
        msg = f"{_RESOURCES}: the ram of {component!r} must be an amount such as 256MB, got {amount!r}"
        raise InvalidTopologyError(msg)
    return float(found[1]) * _MB[found[2].upper()]
