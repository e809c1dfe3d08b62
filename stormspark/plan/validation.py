"""Checks a topology against Storm's rules (J5, A10-A14, A24).

All violations are reported together. Each report names the component, the stream and the user's line, and says what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stormspark.api import ComponentDeclaration, GlobalStreamId, Topology
from stormspark.config import Settings, conf_problems
from stormspark.errors import InvalidTopologyError
from stormspark.grouping import DirectGrouping, Grouping
from stormspark.likely_names import nearest
from stormspark.plan.context import PlanningContext
from stormspark.plan.physical import PhysicalPlan

__all__ = ["check_rules", "problems", "validate"]

#: An example of how to declare a typed stream.
_TYPED = 'declarer.declare(pa.schema({"word": pa.string()}))'
_NAME = re.compile(r"[^/.:\\]+")


def check_rules(plan: PhysicalPlan, context: PlanningContext) -> PhysicalPlan:
    """Raise an `InvalidTopologyError` that lists every rule that the topology breaks with its final configuration."""
    validate(context.topology, plan.conf)
    return plan


def validate(topology: Topology, conf: Mapping[str, Any] | None = None) -> None:
    """Raise an `InvalidTopologyError` that lists every rule that ``topology`` breaks.

    ``conf`` is the final configuration of the topology, by default its own.
    """
    found = list(problems(topology, topology.conf if conf is None else conf))
    if not found:
        return
    msg = found[0]
    if len(found) > 1:
        listed = "\n".join(f"  {number}. {problem}" for number, problem in enumerate(found, 1))
        msg = f"topology {topology.name!r} has {len(found)} errors:\n{listed}"
    raise InvalidTopologyError(msg)


def problems(topology: Topology, conf: Mapping[str, Any]) -> Iterator[str]:
    r"""Yield every rule that ``topology`` breaks, as a sentence.

    >>> list(problems(Topology("a.b", {}), {}))  # doctest: +NORMALIZE_WHITESPACE
    ["a topology's name must not be empty or contain / . : or \\, got 'a.b'",
     "topology 'a.b' has no spout: add one with builder.set_spout(id, spout)"]
    """
    if not isinstance(topology.name, str) or not _NAME.fullmatch(topology.name):
        yield f"a topology's name must not be empty or contain / . : or \\, got {topology.name!r}"
    wrong = conf_problems(conf)
    for problem in wrong:
        yield f"configuration of topology {topology.name!r}: {problem}"
    if not any(component.kind == "spout" for component in topology.components.values()):
        yield f"topology {topology.name!r} has no spout: add one with builder.set_spout(id, spout)"
    for component in topology.components.values():
        yield from _of_ids(component)
        yield from _of_numbers(component)
        yield from _of_types(component)
        for problem in conf_problems(component.conf):
            yield f"{_place(component)}: configuration of the component: {problem}"
        if component.kind == "spout" and component.inputs:
            sources = ", ".join(sorted(repr(source) for source, _ in component.inputs))
            yield f"{_place(component)} may not subscribe to anything, but subscribes to {sources}; make it a bolt"
            continue
        for input, grouping in component.inputs.items():
            yield from _of_input(component, input, grouping, topology)
    if not wrong:
        try:
            settings = Settings.read(conf)
        except InvalidTopologyError as error:  # Each setting alone is valid, but two contradict each other.
            yield f"configuration of topology {topology.name!r}: {error}"
        else:
            yield from _of_limits(topology, settings)


def _of_ids(component: ComponentDeclaration) -> Iterator[str]:
    if not isinstance(component.id, str) or not component.id:
        yield f"{_place(component)}: an id must be a string that is not empty, got {component.id!r}"  # A13
        return
    if component.id.startswith("__"):
        yield f"{_place(component)}: ids that begin with __ are reserved; choose another one"
    for stream in component.streams:
        if stream.startswith("__"):
            yield f"{_place(component)} declares stream {stream!r}, but ids that begin with __ are reserved"


def _of_numbers(component: ComponentDeclaration) -> Iterator[str]:
    executors = component.parallelism
    if isinstance(executors, bool) or not isinstance(executors, int) or executors < 1:
        tasks = f" for {component.num_tasks} tasks" if component.num_tasks else ""
        yield f"{_place(component)}: the number of executors must be a positive whole number, got {executors!r}{tasks}"  # A2


def _of_types(component: ComponentDeclaration) -> Iterator[str]:
    for stream in component.streams.values() if component.vectorised else ():
        if stream.schema is None:
            yield (
                f"{_place(component)} is vectorised, but declares stream {stream.id!r} without types: declare it with a "
                f"pyarrow.schema, as in {_TYPED}"
            )


def _of_input(
    component: ComponentDeclaration, input: GlobalStreamId, grouping: Grouping, topology: Topology
) -> Iterator[str]:
    source, stream = input
    where = component.subscribed_at.get(input) or component.declared_at
    place = f"{where + ': ' if where else ''}bolt {component.id!r}"
    emitter = topology.components.get(source)
    if emitter is None:
        there = nearest(source, topology.components) or f"; the components are {_listed(topology.components)}"
        yield f"{place} subscribes to {source!r}, which does not exist{there}"
        return
    declared = emitter.streams.get(stream)
    if declared is None:
        yield (
            f"{place} subscribes to stream {stream!r} of {source!r} (declared at {emitter.declared_at}), which declares "
            f"{_listed(emitter.streams)}{nearest(stream, emitter.streams) if emitter.streams else _DECLARE}"
        )
        return
    for name in grouping.key_fields:
        if name not in declared.fields:
            others = [other.id for other in emitter.streams.values() if name in other.fields]
            elsewhere = f"; stream {others[0]!r} has it" if others else nearest(name, declared.fields)
            yield (
                f"{place} groups stream {stream!r} of {source!r} by {grouping.describe()}, but that stream has no field "
                f"{name!r}; it has {_listed(declared.fields)}{elsewhere}"
            )
    if component.vectorised and declared.schema is None:
        yield (
            f"{place} is vectorised, but stream {stream!r} of {source!r} (declared at {emitter.declared_at}), to which it "
            f"subscribes, has no types: declare it with a pyarrow.schema, as in {_TYPED}"
        )
    if isinstance(grouping, DirectGrouping) and not declared.direct:
        yield (
            f"{place} subscribes to stream {stream!r} of {source!r} by a direct grouping, but the stream is not declared as "
            f"direct: declare it with declarer.declare(fields, direct=True)"  # D11
        )


def _of_limits(topology: Topology, settings: Settings) -> Iterator[str]:
    """Yield violations of the cluster's limits on workers and executors, and names with dots if its validator is strict (J5)."""
    wanted, allowed = settings.workers or 1, settings.workers_allowed
    if allowed is not None and wanted > allowed:
        yield (
            f"topology {topology.name!r} wants {wanted} workers (topology.workers), but at most "
            f"{allowed} are allowed (nimbus.slots.perTopology)"
        )
    executors = sum(
        one.parallelism for one in topology.components.values() if isinstance(one.parallelism, int)
    )
    if settings.executors_allowed is not None and executors > settings.executors_allowed:
        yield (
            f"topology {topology.name!r} wants {executors} executors (the sum of all parallelisms), but at most "
            f"{settings.executors_allowed} are allowed (nimbus.executors.perTopology)"
        )
    if (settings.validator or "").rpartition(".")[2] == "StrictTopologyValidator":
        for component in topology.components.values():
            for kind, name in (("id", component.id), *(("stream", stream) for stream in component.streams)):
                if "." in name:
                    yield f"{_place(component)}: {kind} {name!r} contains a dot, which nimbus.topology.validator forbids"


def _place(component: ComponentDeclaration) -> str:
    where = f"{component.declared_at}: " if component.declared_at else ""
    return f"{where}{component.kind} {component.id!r}"


#: What a component lacks to which somebody subscribes.
_DECLARE = (
    ": give its class a method declare_output_fields(self, declarer) that calls declarer.declare(Fields(...)), or, in "
    "streamparse and heronpy, the attribute outputs = [...]"
)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "nothing"
