"""The module ``heronpy.api.global_metrics``: some of the names of `stormspark.compat.heronpy.global_metrics`."""

from stormspark.compat.heronpy.global_metrics import incr, init, lock, metricsContainer, root_name, safe_incr

__all__ = ["incr", "init", "lock", "metricsContainer", "root_name", "safe_incr"]
