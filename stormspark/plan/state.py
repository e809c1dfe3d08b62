"""Which components have state, and whether a batch of the topology is one transaction (C35, C42, C43)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stormspark.api import ComponentDeclaration, Topology
from stormspark.config import Settings, merged
from stormspark.errors import InvalidTopologyError
from stormspark.grouping import FieldsGrouping
from stormspark.plan.batches import knows_batches

__all__ = ["check_state", "is_exactly_once", "kind_of_state"]


def kind_of_state(
    component: ComponentDeclaration, topology_conf: Mapping[str, Any], exactly_once: bool = True
) -> str:
    """See `ComponentPlan.kind_of_state`; sinks and windows have state where batches are transactions."""
    kind = _wanted_kind(component, topology_conf)
    if kind == "sink":
        return "heron" if exactly_once else ""
    return "window" if not kind and exactly_once and component.window_time is not None else kind


def is_exactly_once(topology: Topology, conf: Mapping[str, Any]) -> bool:
    """Whether a batch is one transaction: where that is asked for, by our setting or Heron's, else where anybody has state, or
    hears of batches.
    """
    settings = Settings.read(conf)
    if settings.exactly_once is not None:
        return settings.exactly_once
    asked = settings.reliability_mode == "EFFECTIVELY_ONCE"
    return asked or knows_batches(topology) or any(_with_state(topology, conf))


def check_state(topology: Topology, conf: Mapping[str, Any]) -> None:
    """Raise `InvalidTopologyError` for what can't be: state without transactions, and tuples dropped or not tracked in one."""
    settings = Settings.read(conf)
    with_state = list(_with_state(topology, conf))
    if settings.exactly_once is False and with_state:
        msg = (
            f"{_place(with_state[0])} has state, and stormspark.exactly.once is false: a state that is committed batch by batch "
            f"needs batches that are. Leave the setting away"
        )
        raise InvalidTopologyError(msg)
    if settings.exactly_once is False and knows_batches(topology):
        msg = (
            f"topology {topology.name!r} has batch bolts or a transactional spout, and stormspark.exactly.once is false: "
            f"its batches are transactions (G3). Leave the setting away"
        )
        raise InvalidTopologyError(msg)
    for component in topology.components.values():
        _check_keys(component)
    if not is_exactly_once(topology, conf):
        return
    if not settings.acking:
        msg = (
            "topology.acker.executors is 0, and this topology's batches are transactions (stormspark.exactly.once), which can't "
            "tell without trees which rows have failed: set topology.acker.executors to 1, or leave it away"
        )
        raise InvalidTopologyError(msg)
    if settings.backpressure_strategy != "slow":
        msg = (
            f"stormspark.backpressure.strategy is {settings.backpressure_strategy}, and this topology's batches are transactions "
            f"(stormspark.exactly.once), in which nothing may be dropped: leave it at slow"
        )
        raise InvalidTopologyError(msg)


def _check_keys(component: ComponentDeclaration) -> None:
    """State can be dealt out by its keys (``stormspark.state.keys``) where those are what all of a bolt's groupings go by."""
    keys = Settings.read(component.conf).state_keys
    if keys is None:
        return
    if keys != "grouping":
        msg = f"{_place(component)}: stormspark.state.keys is {keys!r}; it may be grouping, or is left away"
        raise InvalidTopologyError(msg)
    if component.window_time is not None:
        msg = (
            f"{_place(component)} has stormspark.state.keys: grouping, and windows, which have all keys of a task mixed and so "
            f"can't be dealt out (C34): leave the setting away, and give the bolt as many tasks each time"
        )
        raise InvalidTopologyError(msg)
    if component.kind_of_state not in ("storm", "heron"):
        msg = (
            f"{_place(component)} has stormspark.state.keys: grouping, and no state with keys: make it a StatefulBolt, or leave "
            f"the setting away"
        )
        raise InvalidTopologyError(msg)
    widths = set()
    for (source, stream), grouping in component.inputs.items():
        if not isinstance(grouping, FieldsGrouping) or not grouping.fields:
            msg = (
                f"{_place(component)} has stormspark.state.keys: grouping, and subscribes to stream {stream!r} of {source!r} by "
                f"{grouping.describe()}: all of its groupings must be by fields. Leave the setting away, or group by fields"
            )
            raise InvalidTopologyError(msg)
        widths.add(len(grouping.fields))
    if len(widths) != 1:
        msg = (
            f"{_place(component)} has stormspark.state.keys: grouping, and its groupings go by {sorted(widths)} fields: which of "
            f"them a key of its state stands for must be clear. Group by as many fields everywhere, or leave the setting away"
        )
        raise InvalidTopologyError(msg)


def _with_state(topology: Topology, conf: Mapping[str, Any]) -> Iterator[ComponentDeclaration]:
    return (one for one in topology.components.values() if _wanted_kind(one, conf) not in ("", "sink"))


def _wanted_kind(component: ComponentDeclaration, topology_conf: Mapping[str, Any]) -> str:
    pickles = Settings.read(merged(topology_conf, component.conf)).state_pickle
    return component.kind_of_state or ("pickle" if pickles and not component.kind_of_source else "")


def _place(component: ComponentDeclaration) -> str:
    return f"{component.declared_at}: {component.kind} {component.id!r}"
