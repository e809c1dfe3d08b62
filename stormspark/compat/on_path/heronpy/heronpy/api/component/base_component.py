"""The module ``heronpy.api.component.base_component``, with the names of `stormspark.compat.heronpy.components`."""

from stormspark.compat.heronpy.components import BaseComponent

__all__ = ["BaseComponent"]
