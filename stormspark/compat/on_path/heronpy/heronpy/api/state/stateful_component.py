"""As in heronpy."""

from stormspark.compat.heronpy.state import StatefulComponent

__all__ = ["StatefulComponent"]
