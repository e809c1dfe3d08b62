"""As in heronpy."""

from stormspark.compat.heronpy.components import BaseBolt

__all__ = ["BaseBolt"]
