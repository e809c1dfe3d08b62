"""`Runner` submits a topology. Files that were written for Heron use this class (G24)."""

from __future__ import annotations

from stormspark.api.declarers import described
from stormspark.errors import InvalidTopologyError
from stormspark.streamlet.builder import Builder
from stormspark.streamlet.config import Config
from stormspark.streamlet.submission import submit
from stormspark.user_line import user_line

__all__ = ["Runner"]


class Runner:
    """Builds topologies and submits them."""

    def run(self, name: str, config: Config, builder: Builder) -> None:
        """Build the topology and pass it to the command that is loading this file.

        Raises `InvalidTopologyError` if an argument has the wrong type, or if no command is loading the file. Also raises the
        errors of `Builder.build`.
        """
        for value, wanted, argument in (
            (name, str, "name"),
            (config, Config, "config"),
            (builder, Builder, "builder"),
        ):
            if not isinstance(value, wanted):
                msg = f"{user_line()}: Runner().run: {argument} must be a {wanted.__name__}, got {described(value)}"
                raise InvalidTopologyError(msg)
        submit(builder.build(name, config))
