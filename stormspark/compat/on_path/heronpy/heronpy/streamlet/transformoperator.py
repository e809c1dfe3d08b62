"""The module ``heronpy.streamlet.transformoperator``, with the names of `stormspark.streamlet`."""

from stormspark.streamlet import TransformOperator

__all__ = ["TransformOperator"]
