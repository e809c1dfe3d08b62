"""The Spark engine. No other package imports pyspark, py4j or delta."""

from stormspark.spark.cores import session_cores
from stormspark.spark.delta_jars import with_delta
from stormspark.spark.session import local_session
from stormspark.spark.topology import SparkTopology, running_topologies, session_for, submit

__all__ = [
    "SparkTopology",
    "local_session",
    "running_topologies",
    "session_cores",
    "session_for",
    "submit",
    "with_delta",
]
