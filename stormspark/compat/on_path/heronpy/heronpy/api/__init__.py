"""The package ``heronpy.api``. Older releases had classes here, and those names still work."""

from stormspark.compat.heronpy.older_names import older_export as __getattr__

__all__ = ["__getattr__"]
