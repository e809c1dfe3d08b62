"""A Storm worker. It hosts tasks, runs each superstep until nothing is left to do, and knows no Spark."""
