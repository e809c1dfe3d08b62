"""The module ``heronpy.api.component.base_component``, which re-exports names of `stormspark.compat.heronpy.components`."""

from stormspark.compat.heronpy.components import BaseComponent

__all__ = ["BaseComponent"]
