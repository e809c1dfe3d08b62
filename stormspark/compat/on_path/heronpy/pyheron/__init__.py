"""The package ``pyheron``, which contained heronpy's modules in the first releases."""

import heronpy as heronpy

from stormspark.compat.heronpy.older_names import older_export as __getattr__

__all__ = ["__getattr__"]
