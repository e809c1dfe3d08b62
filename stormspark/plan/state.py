"""Decides which components have state, and whether a batch of the topology is one transaction (C35, C42, C43)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stormspark.api import ComponentDeclaration, Topology
from stormspark.config import Settings
from stormspark.errors import InvalidTopologyError
from stormspark.grouping import FieldsGrouping
from stormspark.plan.batches import knows_batches
from stormspark.plan.context import PlanningContext
from stormspark.plan.physical import PhysicalPlan

__all__ = ["decide_transactions"]


def decide_transactions(plan: PhysicalPlan, context: PlanningContext) -> PhysicalPlan:
    """Decide whether a batch is one transaction, and how each component receives its state.

    Raises `InvalidTopologyError` for state without transactions, for transactions if tuples may be dropped or are not tracked,
    and for a ``stormspark.state.keys`` that does not fit its bolt.
    """
    _check_without_transactions(plan, context.topology)
    if plan.settings.state_keys not in (None, "grouping"):
        msg = f"stormspark.state.keys must be grouping, got {plan.settings.state_keys!r}; set it to grouping, or remove it"
        raise InvalidTopologyError(msg)
    for component in context.topology.components.values():
        _check_keys(component, context.own_settings(component).state_keys)
    exactly_once = _is_exactly_once(plan, context.topology)
    if exactly_once:
        _check_transactions(plan.settings)
    declared = context.topology.components
    components = {
        one.id: replace(
            one,
            settings=_without_unfit_keys(declared[one.id], one.settings),
            kind_of_state=_kind_of_state(declared[one.id], one.settings, exactly_once=exactly_once),
            windowed=declared[one.id].window_time is not None and exactly_once,
        )
        for one in plan.components.values()
    }
    return replace(plan, exactly_once=exactly_once, components=components)


def _kind_of_state(component: ComponentDeclaration, settings: Settings, *, exactly_once: bool) -> str:
    """Return `ComponentPlan.kind_of_state`. Sinks and windowed bolts have state only if batches are transactions."""
    kind = _wanted_kind(component, settings)
    if kind == "sink":
        return "heron" if exactly_once else ""
    return "window" if not kind and exactly_once and component.window_time is not None else kind


def _is_exactly_once(plan: PhysicalPlan, topology: Topology) -> bool:
    """Return whether a batch is one transaction.

    ``stormspark.exactly.once`` decides, if it is set. Otherwise a batch is a transaction if Heron's reliability mode is
    EFFECTIVELY_ONCE, or if any component has state or is told of batches.
    """
    settings = plan.settings
    if settings.exactly_once is not None:
        return settings.exactly_once
    by_heron = settings.reliability_mode == "EFFECTIVELY_ONCE"
    return by_heron or knows_batches(topology) or any(_with_state(plan, topology))


def _check_without_transactions(plan: PhysicalPlan, topology: Topology) -> None:
    """Raise `InvalidTopologyError` if the configuration forbids transactions that the topology needs."""
    if plan.settings.exactly_once is not False:
        return
    with_state = list(_with_state(plan, topology))
    if with_state:
        msg = (
            f"{_place(with_state[0])} has state, but stormspark.exactly.once is false, and only transactions commit state: "
            f"remove the setting"
        )
        raise InvalidTopologyError(msg)
    if knows_batches(topology):
        msg = (
            f"topology {topology.name!r} has batch bolts or a transactional spout, so its batches are transactions, "  # G3
            f"but stormspark.exactly.once is false: remove the setting"
        )
        raise InvalidTopologyError(msg)


def _check_transactions(settings: Settings) -> None:
    """Raise `InvalidTopologyError` for settings with which a batch can't be a transaction."""
    if not settings.acking:
        msg = (
            "topology.acker.executors is 0, but this topology's batches are transactions (stormspark.exactly.once), and only "
            "acking shows which rows have failed: remove topology.acker.executors, or set it to 1"
        )
        raise InvalidTopologyError(msg)
    if settings.backpressure_strategy != "slow":
        msg = (
            f"stormspark.backpressure.strategy is {settings.backpressure_strategy}, but this topology's batches are transactions "
            f"(stormspark.exactly.once), in which no tuple may be dropped: set it to slow, or remove it"
        )
        raise InvalidTopologyError(msg)


def _without_unfit_keys(component: ComponentDeclaration, settings: Settings) -> Settings:
    """Return the settings of a component without ``stormspark.state.keys`` if that setting does not fit the component.

    The topology's configuration, or a command line, gives the setting to all components at once. It means those that it fits.
    Windows, outboxes of sinks and pickled attributes have other keys, and would go to the wrong tasks.
    """
    try:
        _check_keys(component, settings.state_keys)
    except InvalidTopologyError:
        return replace(settings, state_keys=None)
    return settings


def _check_keys(component: ComponentDeclaration, keys: str | None) -> None:
    """Check ``keys``, a value of ``stormspark.state.keys``: whether the bolt's state can be dealt out by the keys of
    its groupings.

    If ``keys`` is not None, raises `InvalidTopologyError` unless the bolt has state with keys and no windows, and all its
    groupings are fields groupings with the same number of fields.
    """
    if keys is None:
        return
    if keys != "grouping":
        msg = f"{_place(component)}: stormspark.state.keys must be grouping, got {keys!r}; set it to grouping, or remove it"
        raise InvalidTopologyError(msg)
    if component.window_time is not None:
        msg = (
            f"{_place(component)} has windows, and stormspark.state.keys is grouping: a window holds tuples of all keys, so it "
            f"can't be distributed by keys. Remove the setting, and don't change the bolt's number of tasks"  # C34
        )
        raise InvalidTopologyError(msg)
    if component.kind_of_state not in ("storm", "heron"):
        msg = (
            f"{_place(component)} has no state with keys, but stormspark.state.keys is grouping: make it a StatefulBolt, or "
            f"remove the setting"
        )
        raise InvalidTopologyError(msg)
    widths = set()
    for (source, stream), grouping in component.inputs.items():
        if not isinstance(grouping, FieldsGrouping) or not grouping.fields:
            msg = (
                f"{_place(component)} subscribes to stream {stream!r} of {source!r} by {grouping.describe()}, but "
                f"stormspark.state.keys is grouping, so it must group by fields: group by fields, or remove the setting"
            )
            raise InvalidTopologyError(msg)
        widths.add(len(grouping.fields))
    if len(widths) != 1:
        msg = (
            f"{_place(component)} groups by {' and by '.join(map(str, sorted(widths)))} fields, but stormspark.state.keys is "
            f"grouping, so all its groupings must have the same number of fields: change them, or remove the setting"
        )
        raise InvalidTopologyError(msg)


def _with_state(plan: PhysicalPlan, topology: Topology) -> Iterator[ComponentDeclaration]:
    for one in topology.components.values():
        if _wanted_kind(one, plan.components[one.id].settings) not in ("", "sink"):
            yield one


def _wanted_kind(component: ComponentDeclaration, settings: Settings) -> str:
    return component.kind_of_state or (
        "pickle" if settings.state_pickle and not component.kind_of_source else ""
    )


def _place(component: ComponentDeclaration) -> str:
    return f"{component.declared_at}: {component.kind} {component.id!r}"
