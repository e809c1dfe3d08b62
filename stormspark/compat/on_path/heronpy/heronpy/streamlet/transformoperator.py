"""The module ``heronpy.streamlet.transformoperator``: some of the names of `stormspark.streamlet`."""

from stormspark.streamlet import TransformOperator

__all__ = ["TransformOperator"]
