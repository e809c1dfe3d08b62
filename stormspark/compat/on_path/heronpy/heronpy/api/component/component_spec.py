"""The module ``heronpy.api.component.component_spec``: some of the names of `stormspark.compat.heronpy.component_spec`."""

from stormspark.compat.heronpy.component_spec import GlobalStreamId, HeronComponentSpec

__all__ = ["GlobalStreamId", "HeronComponentSpec"]
