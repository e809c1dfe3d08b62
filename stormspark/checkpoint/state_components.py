"""The metadata of a state table about components with state: each component's number of tasks and kind of state (C36)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import NamedTuple

from stormspark.plan.physical import ComponentPlan

__all__ = ["ComponentState", "StatePlace", "component_states", "described", "states_of"]

_PREFIX = b"component/"


@dataclass(frozen=True)
class ComponentState:
    """The number of tasks of a component, and the kind of its state (`ComponentPlan.kind_of_state`)."""

    tasks: int
    kind: str


class StatePlace(NamedTuple):
    """Where a topology's state table is, and whether only Spark writes and reads it."""

    location: str
    by_spark: bool


def states_of(components: Iterable[ComponentPlan]) -> dict[str, ComponentState]:
    """Return the components of a plan that have state, by id."""
    return {
        component.id: ComponentState(len(component.tasks), component.kind_of_state)
        for component in components
        if component.kind_of_state
    }


def described(states: Mapping[str, ComponentState]) -> dict[bytes, bytes | None]:
    """Encode the components as metadata of the table.

    >>> described({"count": ComponentState(4, "storm")})
    {b'component/count': b'{"tasks": 4, "kind": "storm"}'}
    """
    return {_PREFIX + name.encode(): json.dumps(asdict(state)).encode() for name, state in states.items()}


def component_states(metadata: Mapping[bytes, bytes]) -> dict[str, ComponentState]:
    """Decode the metadata that `described` has made. ``metadata`` may have other keys, too."""
    return {
        key.removeprefix(_PREFIX).decode(): ComponentState(**json.loads(value))
        for key, value in metadata.items()
        if key.startswith(_PREFIX)
    }
