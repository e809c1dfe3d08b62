"""The context of planning, which each phase receives together with the plan."""

from __future__ import annotations

from dataclasses import dataclass, field

from stormspark.api import ComponentDeclaration, Topology
from stormspark.config import Settings

__all__ = ["PlanningContext"]


@dataclass(frozen=True)
class PlanningContext:
    """The declared topology, which all phases may read. The final configuration, which a command line may have changed, is in the
    plan.

    ``cores`` is the number of cores that the engine offers to workers; None if it is not known.
    """

    topology: Topology
    cores: int | None = None
    _own: dict[str, Settings] = field(default_factory=dict, repr=False)

    def own_settings(self, component: ComponentDeclaration) -> Settings:
        """Return the settings in the component's own configuration. They are read at the first call.

        Raises `InvalidTopologyError` for settings that contradict each other.
        """
        if component.id not in self._own:
            self._own[component.id] = Settings.read(component.conf) if component.conf else Settings()
        return self._own[component.id]
