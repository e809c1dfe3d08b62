"""The Spark engine. No other package imports pyspark, py4j or delta."""

from stormspark.doctor import Status, check_spark
from stormspark.errors import UnsupportedEnvironmentError
from stormspark.extras import explained

try:
    from stormspark.spark.cores import session_cores
    from stormspark.spark.defaults import spark_defaults
    from stormspark.spark.delta_jars import conf_of_session, with_delta
    from stormspark.spark.jvm import spark_home
    from stormspark.spark.session import local_session, require_java, require_master, require_spark_home
    from stormspark.spark.topology import SparkTopology, running_topologies, session_for, submit
except ModuleNotFoundError as error:
    # A Spark that is there and that this Python does not find needs another advice than none.
    if (error.name or "").partition(".")[0] in ("pyspark", "py4j"):
        told = check_spark()
        if told.status is Status.FAILED:
            raise UnsupportedEnvironmentError(str(told)) from error
    raise explained(error, "the Spark engine") from error

__all__ = [
    "SparkTopology",
    "conf_of_session",
    "local_session",
    "require_java",
    "require_master",
    "require_spark_home",
    "running_topologies",
    "session_cores",
    "session_for",
    "spark_defaults",
    "spark_home",
    "submit",
    "with_delta",
]
