"""What the phases of planning are given beside the plan that they work on."""

from __future__ import annotations

from dataclasses import dataclass, field

from stormspark.api import ComponentDeclaration, Topology
from stormspark.config import Settings

__all__ = ["PlanningContext"]


@dataclass(frozen=True)
class PlanningContext:
    """The topology as it was declared. Its configuration, with what a command line lays over it, is the plan's."""

    topology: Topology
    _own: dict[str, Settings] = field(default_factory=dict, repr=False)

    def own_settings(self, component: ComponentDeclaration) -> Settings:
        """What the component's own configuration says, without the topology's. It is read when a phase first asks.

        Raises `InvalidTopologyError` for settings that do not go together.
        """
        if component.id not in self._own:
            self._own[component.id] = Settings.read(component.conf) if component.conf else Settings()
        return self._own[component.id]
