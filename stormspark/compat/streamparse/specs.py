"""Specs, which ``X.spec(...)`` returns (A31, A32, A35, A36).

A spec has a component, and its name, inputs, outputs, parallelism and configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

from stormspark.compat.streamparse.errors import SpecKeyError, SpecTypeError, SpecValueError
from stormspark.compat.streamparse.groupings import ChosenGrouping, Grouping
from stormspark.compat.streamparse.java import ComponentObject, JavaObject, ShellComponent, checked_arguments
from stormspark.compat.streamparse.streams import GlobalStreamId, Stream, StreamInfo
from stormspark.grouping import CustomStreamGrouping
from stormspark.grouping import Grouping as NativeGrouping
from stormspark.user_line import user_line

__all__ = [
    "ComponentSpec",
    "JavaBoltSpec",
    "JavaComponentSpec",
    "JavaSpoutSpec",
    "NativeBoltSpec",
    "NativeSpoutSpec",
    "ShellBoltSpec",
    "ShellComponentSpec",
    "ShellSpoutSpec",
]


class ComponentSpec:
    """One component of a topology. ``declared_at`` is the line of user code that declares the component."""

    #: ``spout`` or ``bolt``; empty for the base classes.
    kind: ClassVar[str] = ""

    def __init__(
        self,
        component_cls: Any,
        name: str | None = None,
        inputs: Any = None,
        par: Any = 1,
        config: Mapping[str, Any] | None = None,
        outputs: Any = None,
    ) -> None:
        self.declared_at = user_line()
        self.component_cls = component_cls
        self.name = name
        self.par: int | dict[str, int] = self._checked_par(par)
        self.config: dict[str, Any] = self._checked_config(config)
        self.outputs: dict[str, StreamInfo] = self._checked_outputs(outputs)
        self.inputs: dict[GlobalStreamId, Any] = self._checked_inputs(inputs)
        self.component_object = ComponentObject()
        #: Whether the component was written for streamparse 1 or 2, see `stormspark.compat.streamparse.early`.
        self.early = False

    @property
    def common(self) -> SimpleNamespace:
        """The inputs, outputs, parallelism and configuration, under the names that Thrift uses."""
        return SimpleNamespace(
            inputs=self.inputs, streams=self.outputs, parallelism_hint=self.par, json_conf=self.config
        )

    def __getitem__(self, stream: str) -> GlobalStreamId:
        """Return a stream of this component. Raises KeyError for a stream that is not in the component's outputs."""
        if stream not in self.outputs:
            there = ", ".join(map(repr, self.outputs)) or "none"
            msg = (
                f"{user_line()}: Invalid stream for {self.called}: {stream!r}. Valid streams are: {there}; "  # A33
                f"add Stream(fields=[...], name={stream!r}) to its `outputs`"
            )
            raise SpecKeyError(msg)
        return GlobalStreamId(componentId=self.name or self, streamId=stream)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.class_name}, name={self.name!r}, par={self.par!r}, declared at {self.declared_at})"

    @property
    def called(self) -> str:
        """The component's name, or its class's name if it has none yet."""
        return self.name or self.class_name

    @property
    def class_name(self) -> str:
        """The name of the component's class."""
        return str(getattr(self.component_cls, "__name__", self.component_cls))

    def fail(self, kind: type[Exception], problem: str) -> Exception:
        """Return an error of type ``kind``, whose message has the line and the name of this component."""
        return kind(f"{self.declared_at}: {self.called}: {problem}")

    def _checked_par(self, par: Any) -> Any:
        if par is None:
            par = getattr(self.component_cls, "par", 1)
        if isinstance(par, dict):
            for stage, hint in par.items():
                if not isinstance(stage, str) or not _is_int(hint):
                    problem = (
                        f"If par is a dict, it must map from environment names to integers specifying the parallelism hint for "
                        f"the component. Given stage: {stage!r}, parallelism hint: {hint!r}"
                    )
                    raise self.fail(SpecTypeError, problem)
                if hint < 1:
                    problem = (
                        f"Parallelism hint for stage {stage} must be an integer greater than 0. Given: {hint}"
                    )
                    raise self.fail(SpecValueError, problem)
            return dict(par)
        if not _is_int(par) or par < 1:
            problem = f"Parallelism hint must be an integer greater than 0. Given: {par!r}"
            raise self.fail(SpecValueError if _is_int(par) else SpecTypeError, problem)
        return par

    def _checked_config(self, config: Any) -> dict[str, Any]:
        if config is None:
            config = getattr(self.component_cls, "config", None)
        if config is not None and not isinstance(config, dict):
            raise self.fail(SpecTypeError, f"Config must either be a dict or None. Given: {config!r}")
        return dict(config or {})

    def _checked_outputs(self, outputs: Any) -> dict[str, StreamInfo]:
        if outputs is None:
            outputs = getattr(self.component_cls, "outputs", None)
        if outputs is None:
            outputs = []
        if not isinstance(outputs, list | tuple):
            problem = (
                f"Outputs must either be a list of strings or a list of Streams. Given: {outputs!r}; did you mean "
                f"outputs = [{outputs!r}]?"
            )
            raise self.fail(SpecTypeError, problem)
        streams: dict[str, StreamInfo] = {}
        for output in outputs:
            if isinstance(output, Stream):
                streams[output.name] = StreamInfo(list(output.fields), output.direct)
            elif isinstance(output, str):  # a field of the default stream
                streams.setdefault("default", StreamInfo([])).output_fields.append(output)
            else:
                problem = f"Outputs must either be a list of strings or a list of Streams. Invalid entry: {output!r}"
                raise self.fail(SpecTypeError, problem)
        return streams

    def _checked_inputs(self, inputs: Any) -> dict[GlobalStreamId, Any]:
        if isinstance(inputs, dict):
            return dict(map(self._checked_input, inputs, inputs.values()))
        if isinstance(inputs, ComponentSpec):
            inputs = [inputs]
        if inputs is None:
            return {}
        if not isinstance(inputs, list | tuple):
            raise self.fail(SpecTypeError, f"Inputs must either be a list, dict, or None. Given: {inputs!r}")
        return dict(map(self._input_without_grouping, inputs))

    def _checked_input(self, source: Any, grouping: Any) -> tuple[GlobalStreamId, Any]:
        if not isinstance(source, GlobalStreamId | ComponentSpec) or not isinstance(
            grouping, ChosenGrouping | NativeGrouping | CustomStreamGrouping
        ):
            problem = (
                f"If inputs is a dict, it is expected to map from GlobalStreamId or ComponentSpec objects to Grouping objects. "
                f"Given key: {source!r}; Given value: {grouping!r}{_forgotten_spec(source)}"
            )
            raise self.fail(SpecTypeError, problem)
        return source["default"] if isinstance(source, ComponentSpec) else source, grouping

    def _input_without_grouping(self, source: Any) -> tuple[GlobalStreamId, ChosenGrouping]:
        if isinstance(source, GlobalStreamId):
            return source, Grouping.SHUFFLE
        if not isinstance(source, ComponentSpec):
            raise self.fail(
                SpecTypeError,
                f"Inputs must be ComponentSpec or GlobalStreamId objects. Given: {source!r}",
            )
        default = source.outputs.get("default")
        grouping = Grouping.DIRECT if default is not None and default.direct else Grouping.SHUFFLE
        return GlobalStreamId(componentId=source.name or source, streamId="default"), grouping


class JavaComponentSpec(ComponentSpec):
    """A component in Java (A32)."""

    def __init__(
        self,
        component_cls: Any,
        name: str | None = None,
        serialized_java: bytes | None = None,
        full_class_name: str | None = None,
        args_list: Sequence[Any] | None = None,
        **rest: Any,
    ) -> None:
        super().__init__(component_cls, name=name, **rest)
        if serialized_java is not None:
            if not isinstance(serialized_java, bytes):
                raise self.fail(SpecTypeError, "serialized_java must be either bytes or None")
            self.component_object = ComponentObject(serialized_java=serialized_java)
            return
        if not full_class_name:
            raise self.fail(SpecValueError, "full_class_name is required")
        if args_list is None:
            raise self.fail(SpecTypeError, "args_list must not be None")
        arguments = checked_arguments(args_list, f"{self.declared_at}: {self.called}")
        self.component_object = ComponentObject(java_object=JavaObject(full_class_name, arguments))


class ShellComponentSpec(ComponentSpec):
    """A component that a command runs (A32). Components in Python also have such a spec, but stormspark ignores the command."""

    def __init__(
        self,
        component_cls: Any,
        name: str | None = None,
        command: str | None = None,
        script: str | None = None,
        **rest: Any,
    ) -> None:
        super().__init__(component_cls, name=name, **rest)
        if not command:
            raise self.fail(SpecValueError, "command is required")
        if script is None:
            problem = "script must not be None: for a command without arguments it is the empty string"
            raise self.fail(SpecTypeError, problem)
        self.component_object = ComponentObject(shell=ShellComponent(command, script))


class JavaBoltSpec(JavaComponentSpec):
    """A bolt in Java."""

    kind = "bolt"


class JavaSpoutSpec(JavaComponentSpec):
    """A spout in Java."""

    kind = "spout"


class ShellBoltSpec(ShellComponentSpec):
    """A bolt in Python, or one that a command runs."""

    kind = "bolt"


class ShellSpoutSpec(ShellComponentSpec):
    """A spout in Python, or one that a command runs."""

    kind = "spout"


class NativeBoltSpec(ComponentSpec):
    """A bolt of `stormspark.api` in a streamparse topology; see `stormspark.compat.streamparse.native`."""

    kind = "bolt"


class NativeSpoutSpec(ComponentSpec):
    """A spout of `stormspark.api` in a streamparse topology."""

    kind = "spout"


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _forgotten_spec(source: object) -> str:
    if isinstance(source, type) and hasattr(source, "spec"):
        return f"; did you forget {source.__name__}.spec()?"
    return ""
