"""A Storm worker: hosts tasks, runs each superstep to quiescence, knows no Spark."""
