"""The Spark engine; pyspark, py4j and delta are imported here and nowhere else."""
