"""Storm's rules for a topology (J5, A13, A14), each with the component, the stream, the user's line and what
to do.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable

from stormspark.api import ComponentDeclaration, Topology
from stormspark.errors import InvalidTopologyError
from stormspark.grouping import DirectGrouping

__all__ = ["validate"]

_NAME = re.compile(r"^[^/.:\\]+$")


def validate(topology: Topology) -> None:
    """Raise `InvalidTopologyError` for the first rule that ``topology`` breaks."""
    if not isinstance(topology.name, str) or not _NAME.match(topology.name):
        msg = f"a topology's name must not be empty nor contain / . : or \\, got {topology.name!r} (A14)"
        raise InvalidTopologyError(msg)
    _check_conf(topology)
    if not any(component.kind == "spout" for component in topology.components.values()):
        msg = f"topology {topology.name!r} has no spout (J5): add one with builder.set_spout(id, spout)"
        raise InvalidTopologyError(msg)
    for component in topology.components.values():
        _check_ids(component)
        _check_inputs(component, topology)


def _check_conf(topology: Topology) -> None:
    for key, value in topology.conf.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError) as error:
            msg = f"configuration of topology {topology.name!r}: {key!r} is not JSON-serialisable (A24): {error}"
            raise InvalidTopologyError(msg) from error


def _check_ids(component: ComponentDeclaration) -> None:
    place = f"{component.declared_at}: {component.kind} {component.id!r}"
    if component.id.startswith("__"):
        msg = f"{place}: ids that begin with __ are reserved (A13); choose another one"
        raise InvalidTopologyError(msg)
    for stream in component.streams:
        if stream.startswith("__"):
            msg = f"{place}: declares stream {stream!r}, but ids that begin with __ are reserved (A13)"
            raise InvalidTopologyError(msg)


def _check_inputs(component: ComponentDeclaration, topology: Topology) -> None:
    place = f"{component.declared_at}: bolt {component.id!r}"
    for (source, stream), grouping in component.inputs.items():
        emitter = topology.components.get(source)
        if emitter is None:
            msg = f"{place} subscribes to {source!r}, which does not exist (J5){_nearest(source, topology.components)}"
            raise InvalidTopologyError(msg)
        declared = emitter.streams.get(stream)
        if declared is None:
            msg = (
                f"{place} subscribes to stream {stream!r} of {source!r} (declared at {emitter.declared_at}), which declares "
                f"{_listed(emitter.streams)} (J5){_nearest(stream, emitter.streams)}"
            )
            raise InvalidTopologyError(msg)
        missing = [name for name in grouping.key_fields if name not in declared.fields]
        if missing:
            msg = (
                f"{place} groups stream {stream!r} of {source!r} by {grouping.describe()}, but that stream has no field "
                f"{missing[0]!r}; it has {_listed(declared.fields)} (J5){_nearest(missing[0], declared.fields)}"
            )
            raise InvalidTopologyError(msg)
        if isinstance(grouping, DirectGrouping) and not declared.direct:
            msg = (
                f"{place} takes stream {stream!r} of {source!r} by a direct grouping, but it is not declared direct (D11): "
                f"declare it with declarer.declare(fields, direct=True)"
            )
            raise InvalidTopologyError(msg)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "nothing"


def _nearest(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(names), 1)
    return f"; did you mean {close[0]!r}?" if close else ""
