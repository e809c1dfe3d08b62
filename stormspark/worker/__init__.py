"""A Storm worker. It hosts tasks, runs each superstep until no work is left or the deadline comes, and knows no Spark."""
