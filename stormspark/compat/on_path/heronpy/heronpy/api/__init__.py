"""The package ``heronpy.api``. In older releases the package itself had classes, and importing them from it still works."""

from stormspark.compat.heronpy.older_names import older_export as __getattr__

__all__ = ["__getattr__"]
