"""As in heronpy."""

from stormspark.streamlet import TextFileGenerator

__all__ = ["TextFileGenerator"]
