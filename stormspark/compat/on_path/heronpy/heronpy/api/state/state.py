"""The module ``heronpy.api.state.state``, with the names of `stormspark.compat.heronpy.state`."""

from stormspark.compat.heronpy.state import HashMapState, State

__all__ = ["HashMapState", "State"]
