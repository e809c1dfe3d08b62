"""The Spark engine. No other package imports pyspark, py4j or delta."""

from stormspark.spark.cores import session_cores
from stormspark.spark.delta_jars import conf_of_session
from stormspark.spark.session import local_session
from stormspark.spark.topology import SparkTopology, running_topologies, submit

__all__ = [
    "SparkTopology",
    "conf_of_session",
    "local_session",
    "running_topologies",
    "session_cores",
    "submit",
]
