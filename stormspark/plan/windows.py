"""Storm's checks of windowed bolts (C26), which happen before the topology starts."""

from __future__ import annotations

from stormspark.api import ComponentDeclaration, Topology
from stormspark.api.windows import MESSAGE_ID_FIELD
from stormspark.config import merged
from stormspark.errors import InvalidTopologyError
from stormspark.plan.context import PlanningContext
from stormspark.plan.physical import PhysicalPlan
from stormspark.windowing import WindowSettings
from stormspark.windowing.settings import IDLENESS

__all__ = ["check_windows"]


def check_windows(plan: PhysicalPlan, context: PlanningContext) -> PhysicalPlan:
    """Raise `InvalidTopologyError` for the first windowed bolt that can't work.

    Where batches are transactions, tuples are acked with their batch. So message timeouts and max spout pending do not limit how
    long a window may hold them (C41).
    """
    for component in context.topology.components.values():
        if component.window_time is None:
            continue
        try:
            _check(component, context.topology, plan)
        except InvalidTopologyError as error:
            msg = f"{component.declared_at}: windowed bolt {component.id!r}: {error}"
            raise InvalidTopologyError(msg) from None
    return plan


def _check(component: ComponentDeclaration, topology: Topology, plan: PhysicalPlan) -> None:
    conf = merged(plan.conf, component.conf)
    settings = plan.components[component.id].settings
    time = component.window_time
    assert time is not None
    windows = WindowSettings.read(conf)
    windows.check(
        event_time=time.event,
        # Trees time out by the topology's setting, even if the bolt's own configuration has another one.
        message_timeout_secs=None if plan.exactly_once else plan.settings.timeout_secs,
        max_spout_pending=None if plan.exactly_once else settings.max_spout_pending,
    )
    if IDLENESS in component.conf and not time.event:
        msg = (
            "idleness is about watermarks, so it needs timestamps: call with_timestamp_field(name) or "
            "with_timestamp_extractor(function), or remove with_idleness"
        )
        raise InvalidTopologyError(msg)
    unknown = _unknown_sources(windows, component) if IDLENESS in component.conf else []
    if unknown:
        known = ", ".join(f"{source}/{stream}" for source, stream in component.inputs)
        msg = f"with_idleness names {', '.join(map(repr, unknown))}, but the bolt subscribes to {known or 'nothing'}"
        raise InvalidTopologyError(msg)
    late = windows.late_stream
    if late is not None and late not in component.streams:
        msg = (
            f"the bolt has not declared {late!r}, its stream of late tuples: set it with with_late_tuple_stream, or in the "
            f"bolt's own configuration; the topology's configuration is read only after bolts have declared their streams"
        )
        raise InvalidTopologyError(msg)
    message_id = conf.get(MESSAGE_ID_FIELD)
    for role, field, instead in (
        ("timestamp", time.field, "use with_timestamp_extractor"),
        ("message id", message_id, "remove with_message_id_field"),
    ):
        for source, stream in component.inputs if field is not None else ():
            fields = topology.components[source].streams[stream].fields
            if field not in fields:
                msg = (
                    f"the {role} is field {field!r}, but stream {stream!r} of {source!r} has only "
                    f"{', '.join(map(repr, fields)) or 'no fields'}: add the field there, or {instead}"
                )
                raise InvalidTopologyError(msg)


def _unknown_sources(windows: WindowSettings, component: ComponentDeclaration) -> list[str]:
    """Return the streams and components with idleness to which the bolt does not subscribe."""
    known = {"", *(source for source, _ in component.inputs)}
    known |= {f"{source}/{stream}" for source, stream in component.inputs}
    return sorted(set(windows.idle_after_ms) - known)
