"""Metrics that leave the driver: Prometheus asks for them, reporters send them, and users' consumers get each reading (J14-J18).

`families` turns what the driver knows of a topology into families of samples. `exposition` writes them for Prometheus, and each
reporter of ``topology.metrics.reporters`` writes them for somebody else. `consumers` runs the metrics consumers.
"""

from stormspark.reporting.report import FlatSample, Report
from stormspark.reporting.reporter import Reporter, ReporterSettings

__all__ = ["FlatSample", "Report", "Reporter", "ReporterSettings"]
