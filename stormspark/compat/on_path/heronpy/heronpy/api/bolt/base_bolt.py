"""The module ``heronpy.api.bolt.base_bolt``: some of the names of `stormspark.compat.heronpy.components`."""

from stormspark.compat.heronpy.components import BaseBolt

__all__ = ["BaseBolt"]
