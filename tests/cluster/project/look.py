"""Print what the bolt ``count`` has counted: how many numbers, and their sum. The argument is the checkpoint."""

import sys

import stormspark

checkpoint, jars = sys.argv[1:]
if checkpoint.startswith("hdfs:"):
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[1]").config("spark.jars", jars).config("spark.ui.enabled", "false")
    )
    builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    builder = builder.config(
        "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    )
    rows = [row.value for row in stormspark.state(checkpoint, "count", spark=builder.getOrCreate()).collect()]
else:
    rows = list(stormspark.state(checkpoint, "count")["value"])
print("counted", sum(count for count, _ in rows), "sum", sum(sum_ for _, sum_ in rows), flush=True)
