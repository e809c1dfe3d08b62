"""The module ``heronpy.connectors.textfiles.textfilesgenerator``: some of the names of `stormspark.streamlet`."""

from stormspark.streamlet import TextFileGenerator

__all__ = ["TextFileGenerator"]
