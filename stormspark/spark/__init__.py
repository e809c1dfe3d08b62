"""The Spark engine; pyspark, py4j and delta are imported here and nowhere else."""

from stormspark.spark.session import local_session
from stormspark.spark.topology import SparkTopology, submit

__all__ = ["SparkTopology", "local_session", "submit"]
