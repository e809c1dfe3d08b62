"""Storm's FluxShellBolt and FluxShellSpout: components in any language, with setters for what YAML has to say (K20).

Their children start in the folder ``resources`` beside the YAML, or else beside the YAML itself (I3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stormspark.api import DEFAULT_STREAM, Fields, OutputFieldsDeclarer
from stormspark.multilang import ShellBolt, ShellSpout
from stormspark.multilang.component import ShellComponent

__all__ = ["FluxShellBolt", "FluxShellSpout"]


class _FluxShell(ShellComponent):
    def __init__(self, command: list[str], output_fields: list[str] | None = None) -> None:
        super().__init__(command)
        self._streams: dict[str, list[str]] = {}
        self._component_conf: dict[str, Any] = {}
        if output_fields is not None:
            self.set_default_stream(output_fields)

    def set_default_stream(self, output_fields: list[str]) -> None:
        """The fields of the default stream."""
        self._streams[DEFAULT_STREAM] = output_fields

    def set_named_stream(self, name: str, output_fields: list[str]) -> None:
        """The fields of another stream; there are no direct ones."""
        self._streams[name] = output_fields

    def add_component_config(self, key: str, value: Any) -> None:
        """A setting of this component alone; the child hears it with all others."""
        self._component_conf[key] = value

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare what was set."""
        for stream, fields in self._streams.items():
            declarer.declare_stream(stream, Fields(fields))

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """What was added."""
        return self._component_conf


class FluxShellBolt(_FluxShell, ShellBolt):
    """Command and output fields, by constructor or setters.

    >>> bolt = FluxShellBolt(["python3", "split.py"], ["word"])
    >>> bolt.add_component_config("publisher.paths", ["a", "b"])
    >>> bolt.get_component_configuration()
    {'publisher.paths': ['a', 'b']}
    """


class FluxShellSpout(_FluxShell, ShellSpout):
    """See `FluxShellBolt`."""
