"""streamparse's components: the classes of pystorm, each with a ``spec`` method (A31, A32)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stormspark.compat.streamparse import bolt as pystorm_bolt
from stormspark.compat.streamparse import component as pystorm_component
from stormspark.compat.streamparse import spout as pystorm_spout
from stormspark.compat.streamparse.errors import SpecTypeError
from stormspark.compat.streamparse.specs import JavaBoltSpec, JavaSpoutSpec, ShellBoltSpec, ShellSpoutSpec
from stormspark.user_line import user_line

__all__ = [
    "BatchingBolt",
    "Bolt",
    "Component",
    "JavaBolt",
    "JavaSpout",
    "ReliableSpout",
    "ShellBolt",
    "ShellSpout",
    "Spout",
    "TicklessBatchingBolt",
]

#: The command that Storm runs for a component of streamparse. stormspark puts it into specs, but never runs it.
_COMMAND = "streamparse_run"


class Component(pystorm_component.Component):
    """The base class of components. The class attributes are the defaults for the arguments of ``spec`` (A31)."""

    #: The names of the default stream's fields, or `Stream` objects.
    outputs: Any = None
    par: int | dict[str, int] = 1
    config: Mapping[str, Any] | None = None

    @classmethod
    def spec(cls, *args: Any, **kwargs: Any) -> Any:
        """Raise TypeError: only spouts and bolts have specs."""
        msg = f"{user_line()}: Specifications should either be bolts or spouts. Given: {cls!r}"  # A36
        raise SpecTypeError(msg)


class JavaSpout(Component):
    """A spout in Java (A32). stormspark runs the Python class that is known under the name of the Java class."""

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        serialized_java: bytes | None = None,
        full_class_name: str | None = None,
        args_list: Sequence[Any] | None = None,
        par: Any = 1,
        config: Mapping[str, Any] | None = None,
        outputs: Any = None,
    ) -> JavaSpoutSpec:
        """Return a spec for a Java class, given by its name, or for a serialized object, which stormspark can't run."""
        return JavaSpoutSpec(
            cls, name, serialized_java, full_class_name, args_list, par=par, config=config, outputs=outputs
        )


class JavaBolt(Component):
    """A bolt in Java (A32). stormspark runs the Python class that is known under the name of the Java class."""

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        serialized_java: bytes | None = None,
        full_class_name: str | None = None,
        args_list: Sequence[Any] | None = None,
        inputs: Any = None,
        par: Any = 1,
        config: Mapping[str, Any] | None = None,
        outputs: Any = None,
    ) -> JavaBoltSpec:
        """Return a spec for a Java class, given by its name, or for a serialized object, which stormspark can't run."""
        return JavaBoltSpec(
            cls,
            name,
            serialized_java,
            full_class_name,
            args_list,
            inputs=inputs,
            par=par,
            config=config,
            outputs=outputs,
        )


class ShellSpout(Component):
    """A spout in any language, in a process of its own (A32)."""

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        command: str | None = None,
        script: str | None = None,
        par: Any = None,
        config: Mapping[str, Any] | None = None,
        outputs: Any = None,
    ) -> ShellSpoutSpec:
        """Return a spec for a child process. ``script`` has the arguments of ``command``, separated by spaces."""
        return ShellSpoutSpec(cls, name, command, script, par=par, config=config, outputs=outputs)


class ShellBolt(Component):
    """A bolt in any language, in a process of its own (A32)."""

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        command: str | None = None,
        script: str | None = None,
        inputs: Any = None,
        par: Any = None,
        config: Mapping[str, Any] | None = None,
        outputs: Any = None,
    ) -> ShellBoltSpec:
        """Return a spec for a child process. ``script`` has the arguments of ``command``, separated by spaces."""
        return ShellBoltSpec(
            cls, name, command, script, inputs=inputs, par=par, config=config, outputs=outputs
        )


class Spout(pystorm_spout.Spout, ShellSpout):
    """The class of the same name in pystorm, with a ``spec`` method."""

    @classmethod
    def spec(  # type: ignore[override]
        cls, name: str | None = None, par: Any = None, config: Mapping[str, Any] | None = None
    ) -> ShellSpoutSpec:
        """Return a spec of this spout. Missing arguments default to the class attributes (A31)."""
        return ShellSpoutSpec(cls, name, _COMMAND, _script(cls), par=par, config=config, outputs=cls.outputs)


class ReliableSpout(pystorm_spout.ReliableSpout, Spout):
    """The class of the same name in pystorm, with a ``spec`` method."""


class Bolt(pystorm_bolt.Bolt, ShellBolt):
    """The class of the same name in pystorm, with a ``spec`` method."""

    @classmethod
    def spec(  # type: ignore[override]
        cls,
        name: str | None = None,
        inputs: Any = None,
        par: Any = None,
        config: Mapping[str, Any] | None = None,
    ) -> ShellBoltSpec:
        """Return a spec of this bolt. Missing arguments default to the class attributes (A31)."""
        return ShellBoltSpec(
            cls, name, _COMMAND, _script(cls), inputs=inputs, par=par, config=config, outputs=cls.outputs
        )


class BatchingBolt(pystorm_bolt.BatchingBolt, Bolt):
    """The class of the same name in pystorm, with a ``spec`` method."""


class TicklessBatchingBolt(pystorm_bolt.TicklessBatchingBolt, BatchingBolt):
    """The class of the same name in pystorm, with a ``spec`` method."""


def _script(cls: type) -> str:
    return f"{cls.__module__}.{cls.__name__}"
