"""The module ``heronpy.api.bolt.base_bolt``, with the names of `stormspark.compat.heronpy.components`."""

from stormspark.compat.heronpy.components import BaseBolt

__all__ = ["BaseBolt"]
