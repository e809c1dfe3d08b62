"""heronpy's two ways to write a topology: a class with specs as its attributes, and a builder (A40)."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from stormspark.api import Component, SourceSpout
from stormspark.api import Topology as PlainTopology
from stormspark.compat.heronpy.component_spec import HeronComponentSpec
from stormspark.compat.heronpy.configuration import checked, with_defaults
from stormspark.compat.heronpy.constants import DEFAULTS
from stormspark.compat.heronpy.lowering import lowered, native_spec
from stormspark.errors import InvalidTopologyError
from stormspark.streamlet.submission import submit
from stormspark.user_line import user_line

__all__ = ["Topology", "TopologyBuilder", "TopologyType"]


class TopologyType(type):
    """The metaclass of topologies. It checks the specs in a class body, and names unnamed ones after their attributes (A41)."""

    DEFAULT_TOPOLOGY_CONFIG = DEFAULTS

    def __new__(mcs, classname: str, bases: tuple[type, ...], class_dict: dict[str, Any]) -> TopologyType:
        """Make the class. Raises `InvalidTopologyError` if the topology is not valid."""
        if not bases:
            return super().__new__(mcs, classname, bases, class_dict)
        specs: dict[str, HeronComponentSpec] = {}
        for attribute, spec in class_dict.items():
            if not isinstance(spec, HeronComponentSpec):
                continue
            if spec.name is None:
                spec.name = attribute
            if spec.name in specs:
                msg = (
                    f"{spec.place}: Duplicate component name: {spec.name}, used already at "
                    f"{specs[spec.name].declared_at}"
                )
                raise InvalidTopologyError(msg)
            specs[spec.name] = spec
        for spec in specs.values():
            _check(spec)
        if not any(spec.is_spout for spec in specs.values()):
            msg = f"{user_line()}: topology {classname!r}: A Topology requires at least one Spout"
            raise InvalidTopologyError(msg)
        config = class_dict.get("config")
        place = f"{user_line()}: topology {classname!r}"
        own = checked(config, place) if isinstance(config, dict) else {}
        return super().__new__(
            mcs,
            classname,
            bases,
            {
                **class_dict,
                "_heron_specs": list(specs.values()),
                "_own_config": own,
                "_topo_config": with_defaults(own),
                "topology_name": classname,
                "topology_id": f"{classname}{uuid.uuid4()}",
            },
        )


def _check(spec: HeronComponentSpec) -> None:
    if spec.is_spout and not spec.outputs:
        spec.refuse("requires at least one output, because it is a spout")
    if not spec.is_spout and not spec.inputs:
        spec.refuse("requires at least one input, because it is a bolt")
    spec.streams(), spec.groupings(), spec.config()


class Topology(metaclass=TopologyType):
    """The base class of topologies. A topology's name is that of its class.

    class WordCount(Topology):
        words = WordSpout.spec(par=2)
        count = CountBolt.spec(par=2, inputs={words: Grouping.fields("word")})
        config = {"topology.reliability.mode": "ATLEAST_ONCE"}
    """

    topology_name: ClassVar[str]
    topology_id: ClassVar[str]
    _heron_specs: ClassVar[list[HeronComponentSpec]]
    _own_config: ClassVar[dict[str, Any]]
    _topo_config: ClassVar[dict[str, Any]]

    @classmethod
    def write(cls) -> None:
        """Submit the topology to the command that loads the user's file. Heron's own method writes the topology to disk."""
        submit(cls.lowered())

    @classmethod
    def lowered(cls) -> PlainTopology:
        """Return the topology as a `stormspark.api.Topology`, which engines can run."""
        if not hasattr(cls, "_heron_specs"):
            msg = f"{user_line()}: The base Topology class cannot be writable: inherit from it"
            raise InvalidTopologyError(msg)
        return lowered(cls.topology_name, cls._heron_specs, cls._own_config)


class TopologyBuilder:
    """A builder that collects specs, and then submits a topology with them (A40).

    In place of a class, the builder also takes an object: a spout or bolt of stormspark, such as a ``KafkaSpout`` or a
    ``ShellBolt`` (W23).
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or name in ("", "Topology"):
            msg = f"{user_line()}: a topology's name must be a string, and not 'Topology', given: {name!r}"
            raise InvalidTopologyError(msg)
        self.topology_name = name
        self._specs: dict[str, HeronComponentSpec] = {}
        self._topology_config: dict[str, Any] = {}

    def add_spec(self, *specs: HeronComponentSpec) -> None:
        """Add components. Raises TypeError for an object that is no spec.

        Raises `InvalidTopologyError` if a spec has no name, the name ``config``, or a name that is in use.
        """
        for spec in specs:
            if not isinstance(spec, HeronComponentSpec):
                msg = f"{user_line()}: Argument to add_spec needs to be HeronComponentSpec, given: {spec!r}"
                raise TypeError(msg)
            if spec.name is None:
                spec.refuse("TopologyBuilder cannot take a spec without name")
            elif spec.name == "config":
                spec.refuse("config is a reserved name")
            elif spec.name in self._specs:
                first = self._specs[spec.name].declared_at
                spec.refuse(f"Attempting to add duplicate spec name: {spec.name!r}, in use since {first}")
            else:
                self._specs[spec.name] = spec

    def add_spout(
        self, name: str, spout_cls: Any, par: int, config: Any = None, optional_outputs: Any = None
    ) -> HeronComponentSpec:
        """Add a spout. Returns its spec, which you can use in ``inputs``."""
        if isinstance(spout_cls, Component | SourceSpout):
            spec = native_spec(name, spout_cls, par, None, config, is_spout=True)
        else:
            spec = spout_cls.spec(name=name, par=par, config=config, optional_outputs=optional_outputs)
        self.add_spec(spec)
        return spec

    def add_bolt(
        self,
        name: str,
        bolt_cls: Any,
        par: int,
        inputs: Any,
        config: Any = None,
        optional_outputs: Any = None,
    ) -> HeronComponentSpec:
        """Add a bolt. Returns its spec, which you can use in ``inputs``."""
        if isinstance(bolt_cls, Component):
            spec = native_spec(name, bolt_cls, par, inputs, config, is_spout=False)
        else:
            spec = bolt_cls.spec(
                name=name, par=par, inputs=inputs, config=config, optional_outputs=optional_outputs
            )
        self.add_spec(spec)
        return spec

    def set_config(self, config: dict[str, Any]) -> None:
        """Set the topology's configuration, which replaces any earlier one. Raises TypeError if ``config`` is not a dict."""
        if not isinstance(config, dict):
            msg = f"{user_line()}: Argument to set_config needs to be dict, given: {config!r}"
            raise TypeError(msg)
        self._topology_config = config

    def build(self) -> type[Topology]:
        """Return the topology's class. Notebooks and tests pass the result of its ``lowered()`` to an engine."""
        return TopologyType(self.topology_name, (Topology,), {**self._specs, "config": self._topology_config})  # type: ignore[return-value]

    def build_and_submit(self) -> None:
        """Check everything, and submit the topology to the command that loads the file."""
        self.build().write()
