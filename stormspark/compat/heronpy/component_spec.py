"""Specs, which heronpy's ``spec()`` returns. A spec describes one component: its class, inputs and outputs (A41, A42)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from stormspark.compat.heronpy.configuration import checked
from stormspark.compat.heronpy.stream import Grouping, Stream
from stormspark.errors import InvalidTopologyError
from stormspark.user_line import user_line

__all__ = ["GlobalStreamId", "HeronComponentSpec"]


class HeronComponentSpec:
    """One component of a topology. A spec without a name gets the name of the class attribute that holds the spec (A40).

    ``spec["stream"]`` is one of the component's streams. Use it in the ``inputs`` of another component.
    """

    def __init__(
        self,
        name: str | None,
        python_class_path: str,
        is_spout: bool,
        par: int,
        inputs: Any = None,
        outputs: Any = None,
        config: Any = None,
        *,
        component: Any = None,
    ) -> None:
        self.declared_at = user_line()
        self.name = name
        self.python_class_path = python_class_path
        self.is_spout = is_spout
        self.parallelism = par
        self.inputs = inputs
        self.outputs = outputs
        self.custom_config = config
        #: The user's class, or a spout or bolt object of stormspark, which runs unchanged (W23). None if only the path of the
        #: class is known.
        self.component = component
        self.uuid = str(uuid.uuid4())
        if name is not None and not isinstance(name, str):
            self.refuse(f"the name of a component must be a string, given: {name!r}")
        if isinstance(par, bool) or not isinstance(par, int) or par < 1:
            self.refuse(f"par must be an integer above 0, given: {par!r}")

    @property
    def place(self) -> str:
        """The component's place, as errors name it: the user's line, and the component's kind, name and class."""
        kind = "spout" if self.is_spout else "bolt"
        named = f" {self.name!r}" if self.name is not None else ""
        return f"{self.declared_at}: {kind}{named} ({self.python_class_path})"

    def refuse(self, problem: str) -> None:
        """Raise `InvalidTopologyError` with the place and the problem."""
        msg = f"{self.place}: {problem}"
        raise InvalidTopologyError(msg)

    def __getitem__(self, stream_id: str) -> GlobalStreamId:
        if stream_id not in self.get_out_streamids():
            there = ", ".join(map(repr, sorted(self.get_out_streamids()))) or "none"
            msg = (
                f"{user_line()}: A given stream id does not exist on this component: {stream_id!r}; {self.place} has {there} "
                f""
            )
            raise InvalidTopologyError(msg)
        return GlobalStreamId(self.name or self, stream_id)

    def get_out_streamids(self) -> set[str]:
        """Return the ids of the streams that the component declares."""
        return {one.stream_id if isinstance(one, Stream) else "default" for one in self._listed_outputs()}

    def streams(self) -> dict[str, Stream]:
        """Return the component's streams by id. Plain strings in its outputs are the fields of the default stream.

        Raises TypeError unless the outputs are a list or tuple of strings and `Stream` objects.
        """
        found: dict[str, Stream] = {}
        for output in self._listed_outputs():
            if isinstance(output, str):
                found.setdefault("default", Stream()).fields.append(output)
            elif output.stream_id == "default" and "default" in found:
                found["default"].fields.extend(output.fields)
            else:
                found[output.stream_id] = Stream(output.fields, output.stream_id, output.direct)
        return found

    def _listed_outputs(self) -> list[str | Stream]:
        outputs = self.outputs
        if outputs is None:
            return []
        if not isinstance(outputs, list | tuple):
            msg = f"{self.place}: outputs must be either list or tuple, given: {outputs!r}"
            raise TypeError(msg)
        for output in outputs:
            if not isinstance(output, str | Stream):
                msg = f"{self.place}: outputs must be a list of strings or Streams, given: {output!r}"
                raise TypeError(msg)
        return list(outputs)

    def groupings(self) -> dict[tuple[str, str], Any]:
        """Return the component's inputs: the grouping for each (source, stream).

        Raises TypeError or `InvalidTopologyError` if the inputs have the wrong form.
        """
        inputs = self.inputs
        if isinstance(inputs, Mapping):
            given = list(inputs.items())
        elif isinstance(inputs, list | tuple):
            given = [(source, Grouping.SHUFFLE) for source in inputs]
        elif inputs is None:
            given = []
        else:
            msg = f"{self.place}: inputs must be a list, dict, or None, given: {inputs!r}"
            raise TypeError(msg)
        found: dict[tuple[str, str], Any] = {}
        for source, grouping in given:
            if not Grouping.is_grouping_sane(grouping):
                self.refuse(
                    f"A given grouping is not supported: {grouping!r}; use a grouping of the class Grouping"
                )
            if isinstance(source, HeronComponentSpec):
                source = GlobalStreamId(source, "default")  # noqa: PLW2901
            if not isinstance(source, GlobalStreamId):
                self.refuse(
                    f"{source!r} is not supported as an input: name a spec of this topology, or spec['stream']"
                )
            if not source.is_named:
                self.refuse(f"its input {source} is not part of this topology, because it has no name")
            found[source.component_id, source.stream_id] = grouping
        return found

    def config(self) -> dict[str, Any]:
        """Return the component's own configuration, in Heron's form (A44).

        Raises TypeError if the configuration is not a dict, or a key is not a string.
        """
        return checked(self.custom_config, self.place)


class GlobalStreamId:
    """A stream of a component. ``componentId`` is the component's name or its spec (A42)."""

    def __init__(self, componentId: str | HeronComponentSpec, streamId: str) -> None:  # noqa: N803 - heronpy's
        if not isinstance(componentId, str | HeronComponentSpec):
            msg = (
                f"{user_line()}: GlobalStreamId: componentId must be either string or HeronComponentSpec, given: "
                f"{componentId!r}"
            )
            raise TypeError(msg)
        if not isinstance(streamId, str):
            msg = f"{user_line()}: GlobalStreamId: streamId must be string type, given: {streamId!r}"
            raise TypeError(msg)
        self._component = componentId
        self.stream_id = streamId

    @property
    def is_named(self) -> bool:
        """Whether the component has a name."""
        return isinstance(self._component, str) or self._component.name is not None

    @property
    def component_id(self) -> str:
        """The component's name. As long as the component has no name, this is a description of the component."""
        if isinstance(self._component, str):
            return self._component
        return (
            self._component.name
            or f"<{self._component.python_class_path}, without a name, {self._component.uuid}>"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalStreamId) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return f"{self.component_id}:{self.stream_id}"

    def __repr__(self) -> str:
        return f"GlobalStreamId({self})"
