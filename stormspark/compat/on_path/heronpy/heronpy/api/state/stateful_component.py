"""The module ``heronpy.api.state.stateful_component``: some of the names of `stormspark.compat.heronpy.state`."""

from stormspark.compat.heronpy.state import StatefulComponent

__all__ = ["StatefulComponent"]
