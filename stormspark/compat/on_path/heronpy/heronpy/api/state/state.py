"""As in heronpy."""

from stormspark.compat.heronpy.state import HashMapState, State

__all__ = ["HashMapState", "State"]
