"""What fits here and what does not: checks of Python, Java, Spark and this host, for ``stormspark doctor`` and for starts.

A check is a function that returns a `Result`: how it is, and what to do. A topology's start takes the same checks of Java and
SPARK_HOME, so its errors are the same sentences. No check starts Java's machine, and none imports pyspark.
`stormspark.spark.executor_checks` has those that ask executors.
"""

from stormspark.doctor.host import (
    check_checkpoint,
    check_descriptors,
    check_disk,
    check_home,
    check_host_name,
    check_logs,
    check_ports,
    check_temporary,
    own_address,
)
from stormspark.doctor.java import check_java
from stormspark.doctor.python import (
    LEAST,
    check_executors_python,
    check_extras,
    check_packages,
    check_python,
    check_tuple_path,
)
from stormspark.doctor.result import Result, Status
from stormspark.doctor.spark import LEAST_SPARK, check_jars, check_spark, check_spark_home, pyspark_found

__all__ = [
    "LEAST",
    "LEAST_SPARK",
    "Result",
    "Status",
    "check_checkpoint",
    "check_descriptors",
    "check_disk",
    "check_executors_python",
    "check_extras",
    "check_home",
    "check_host_name",
    "check_jars",
    "check_java",
    "check_logs",
    "check_packages",
    "check_ports",
    "check_python",
    "check_spark",
    "check_spark_home",
    "check_temporary",
    "check_tuple_path",
    "own_address",
    "pyspark_found",
]
