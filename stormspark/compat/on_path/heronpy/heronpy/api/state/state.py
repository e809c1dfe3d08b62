"""The module ``heronpy.api.state.state``, which re-exports names of `stormspark.compat.heronpy.state`."""

from stormspark.compat.heronpy.state import HashMapState, State

__all__ = ["HashMapState", "State"]
