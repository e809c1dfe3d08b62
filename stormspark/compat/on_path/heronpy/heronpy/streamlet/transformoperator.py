"""``heronpy.streamlet.transformoperator``."""

from stormspark.streamlet import TransformOperator

__all__ = ["TransformOperator"]
