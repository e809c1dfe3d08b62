"""Storm's FluxShellBolt and FluxShellSpout: components in any language, with setters for Flux files (K20).

Their children start in the folder that has their script: `stormspark.multilang.scripts` lists the folders of a project that are
searched, from the YAML file's folder up to the project's root (I3).
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
        """Set the fields of the default stream."""
        self._streams[DEFAULT_STREAM] = output_fields

    def set_named_stream(self, name: str, output_fields: list[str]) -> None:
        """Set the fields of another stream. It can't be a direct stream."""
        self._streams[name] = output_fields

    def add_component_config(self, key: str, value: Any) -> None:
        """Add a setting for this component only. The child process gets it with the rest of its configuration."""
        self._component_conf[key] = value

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the streams whose fields were set."""
        for stream, fields in self._streams.items():
            declarer.declare_stream(stream, Fields(fields))

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Return the settings that were added."""
        return self._component_conf


class FluxShellBolt(_FluxShell, ShellBolt):
    """A bolt in any language. The constructor or setters set its output fields.

    >>> bolt = FluxShellBolt(["python3", "split.py"], ["word"])
    >>> bolt.add_component_config("publisher.paths", ["a", "b"])
    >>> bolt.get_component_configuration()
    {'publisher.paths': ['a', 'b']}
    """


class FluxShellSpout(_FluxShell, ShellSpout):
    """A spout in any language. The constructor or setters set its output fields, as for `FluxShellBolt`."""
