"""As in heronpy."""

from stormspark.compat.heronpy.tuples import Tuple, TupleHelper

__all__ = ["Tuple", "TupleHelper"]
