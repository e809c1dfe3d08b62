"""As in heronpy."""

from stormspark.compat.heronpy.components import BaseComponent

__all__ = ["BaseComponent"]
