"""What heronpy's own package of this name has; older releases had the classes here."""

from stormspark.compat.heronpy.older_names import older_export as __getattr__

__all__ = ["__getattr__"]
