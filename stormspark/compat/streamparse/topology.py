"""The base class of topologies, and its metaclass (A30, A36)."""

from __future__ import annotations

import difflib
from typing import Any, NoReturn

from stormspark.compat.streamparse.component import Component
from stormspark.compat.streamparse.errors import SpecKeyError, SpecTypeError, SpecValueError
from stormspark.compat.streamparse.flux_dict import flux_dict
from stormspark.compat.streamparse.groupings import ChosenGrouping
from stormspark.compat.streamparse.specs import ComponentSpec
from stormspark.compat.streamparse.streams import GlobalStreamId
from stormspark.user_line import user_line

__all__ = ["Topology", "TopologyType"]


class TopologyType(type):
    """The metaclass of topologies. It names the specs in a class body, and checks that they fit together."""

    config: dict[str, Any]
    specs: list[ComponentSpec]

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> TopologyType:
        """Make the class. For a mistake, raises `SpecValueError`, `SpecTypeError` or `SpecKeyError` with the user's line."""
        where = user_line()
        specs = _named(body, where)
        for spec in specs.values():
            _check(spec)
            spec.inputs = _resolved(spec, specs)
        if bases and not any(spec.kind == "spout" for spec in specs.values()):
            msg = f"{where}: topology {name}: A Topology requires at least one Spout"
            raise SpecValueError(msg)
        config = body.setdefault("config", {})
        if not isinstance(config, dict):
            msg = f"{where}: topology {name}: Topology config must be a dictionary. Given: {config!r}"
            raise SpecTypeError(msg)
        body["specs"] = list(specs.values())
        body["declared_at"] = where
        return super().__new__(mcs, name, bases, body)

    @property
    def thrift_spouts(cls) -> dict[str, ComponentSpec]:
        """The spouts by name."""
        return {str(spec.name): spec for spec in cls.specs if spec.kind == "spout"}

    @property
    def thrift_bolts(cls) -> dict[str, ComponentSpec]:
        """The bolts by name."""
        return {str(spec.name): spec for spec in cls.specs if spec.kind == "bolt"}


def _named(body: dict[str, Any], where: str) -> dict[str, ComponentSpec]:
    """Return the specs of a class body by name."""
    specs: dict[str, ComponentSpec] = {}
    for attribute, value in body.items():
        if isinstance(value, ComponentSpec):
            if value.name is None:
                value.name = attribute
            if value.name in specs:
                other = specs[value.name].declared_at
                raise value.fail(
                    SpecValueError, f"Duplicate component name: {value.name}, declared at {other} too"
                )
            specs[value.name] = value
        elif isinstance(value, Component) or (isinstance(value, type) and issubclass(value, Component)):
            msg = (
                f"{where}: Topology classes should have ComponentSpec attributes. Did you forget to call the spec class method "
                f"for your component? Given: {attribute} = {value!r}"
            )
            raise SpecTypeError(msg)
    return specs


def _check(spec: ComponentSpec) -> None:
    if spec.kind == "bolt" and not spec.inputs:
        problem = f'{spec.class_name} "{spec.name}" requires at least one input, because it is a Bolt'
        raise spec.fail(SpecValueError, problem)
    if spec.kind == "spout" and not spec.outputs:
        problem = f'{spec.class_name} "{spec.name}" requires at least one output, because it is a Spout'
        raise spec.fail(SpecValueError, problem)
    if not spec.kind:
        raise spec.fail(SpecTypeError, "Specifications should either be bolts or spouts")


def _resolved(spec: ComponentSpec, specs: dict[str, ComponentSpec]) -> dict[GlobalStreamId, Any]:
    """Return the inputs with names in place of specs. Raises an error for inputs that don't fit."""
    inputs = {}
    for source, grouping in spec.inputs.items():
        name = (
            source.componentId.name if isinstance(source.componentId, ComponentSpec) else source.componentId
        )
        if name is None:
            raise spec.fail(SpecTypeError, "GlobalStreamId.componentId cannot be None")
        emitter = specs.get(name)
        if emitter is None:
            problem = f"subscribes to {name!r}, which is no component of this topology{_nearest(name, specs)}"  # A35
            raise spec.fail(SpecKeyError, problem)
        stream = emitter.outputs.get(source.streamId or "")
        if stream is None:
            problem = f"subscribes to stream {source.streamId!r} of {name!r}, whose outputs are {_listed(emitter.outputs)}"
            raise spec.fail(SpecKeyError, problem)
        for field in (grouping.fields or ()) if isinstance(grouping, ChosenGrouping) else ():
            if field not in stream.output_fields:
                problem = (
                    f"Field {field!r} specified in grouping is not a valid output field for the {name!r} {source.streamId!r} "
                    f"stream, which has {_listed(stream.output_fields)}{_nearest(field, stream.output_fields)}"
                )
                raise spec.fail(SpecValueError, problem)
        inputs[GlobalStreamId(name, source.streamId)] = grouping
    return inputs


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names)) or "none"


def _nearest(name: Any, names: Any) -> str:
    close = difflib.get_close_matches(str(name), list(names), 1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {_listed(names)}"


class Topology(metaclass=TopologyType):
    """The base class of topologies. Each attribute that is a spec is a component (A30).

    A component is named after its attribute, unless the spec has a name.

    ``config`` is the topology's configuration.
    """

    #: The line of user code that declares the topology.
    declared_at: str

    @classmethod
    def to_flux_dict(cls, name: str) -> dict[str, Any]:
        """Return the topology as the data of a Flux file (A38)."""
        return flux_dict(name, cls.specs)

    @classmethod
    def write(cls, stream: Any) -> NoReturn:
        """Raise NotImplementedError: stormspark has no use for Thrift, the form in which Storm's Nimbus gets a topology."""
        msg = (
            f"{user_line()}: topologies are not written as Thrift, which is for Storm's Nimbus; run the topology's file by "
            f"`stormspark run`, or write {cls.__name__}.to_flux_dict(name) as YAML"
        )
        raise NotImplementedError(msg)

    read = write
