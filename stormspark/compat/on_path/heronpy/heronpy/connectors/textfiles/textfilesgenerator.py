"""As in heronpy."""

from stormspark.compat.heronpy.generators import TextFileGenerator

__all__ = ["TextFileGenerator"]
