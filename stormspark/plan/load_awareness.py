"""Storm's shuffle for those who ask for it: with ``topology.disable.loadaware.messaging: false`` it follows load (D6)."""

from __future__ import annotations

from dataclasses import replace

from stormspark.api import Topology
from stormspark.config import Settings
from stormspark.grouping import Grouping, LoadAwareShuffleGrouping, LocalOrShuffleGrouping, ShuffleGrouping

__all__ = ["follow_load"]


def _load_aware(grouping: Grouping) -> Grouping:
    if isinstance(grouping, ShuffleGrouping):
        return LoadAwareShuffleGrouping()
    if isinstance(grouping, LocalOrShuffleGrouping):
        return LoadAwareShuffleGrouping(stay_local=True)
    return grouping


def follow_load(topology: Topology, settings: Settings) -> Topology:
    """Put the load-aware grouping in the place of each plain one, where the configuration says aloud what Storm's default is.

    Without the key nothing changes: plain round robin is our default, because it is even (W17).

    >>> from stormspark import TopologyBuilder
    >>> from stormspark.testing import TestWordCounter, TestWordSpout
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", TestWordSpout())
    >>> _ = builder.set_bolt("count", TestWordCounter()).shuffle_grouping("words")
    >>> settings = Settings.read({"topology.disable.loadaware.messaging": False})
    >>> [*follow_load(builder.create_topology("demo"), settings).components["count"].inputs.values()]
    [LoadAwareShuffleGrouping(stay_local=False)]
    """
    if settings.disable_load_aware is not False:
        return topology
    components = {
        component.id: replace(
            component,
            inputs={stream: _load_aware(one) for stream, one in component.inputs.items()},
        )
        for component in topology.components.values()
    }
    return replace(topology, components=components)
