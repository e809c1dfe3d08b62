"""The module ``heronpy.api.tuple``: some of the names of `stormspark.compat.heronpy.tuples`."""

from stormspark.compat.heronpy.tuples import Tuple, TupleHelper

__all__ = ["Tuple", "TupleHelper"]
