"""The settings that hold for each component, read once, when the topology is planned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stormspark.api import ComponentDeclaration
from stormspark.config import Settings, for_component, merged

__all__ = ["settings_of"]


def settings_of(
    component: ComponentDeclaration, topology_conf: Mapping[str, Any], of_topology: Settings
) -> Settings:
    """The settings of the component's tasks: its own configuration lies over the topology's, as far as it may (A20, A21).

    A component that sets nothing has the topology's settings, the same object, so a pickled plan holds that one once.
    """
    conf = for_component(component.conf)
    return Settings.read(merged(topology_conf, conf)) if conf else of_topology
