"""As in heronpy."""

from stormspark.compat.heronpy.component_spec import GlobalStreamId, HeronComponentSpec

__all__ = ["GlobalStreamId", "HeronComponentSpec"]
