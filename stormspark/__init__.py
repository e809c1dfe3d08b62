"""stormspark: Storm and Heron topologies, written in Python, run as Spark Structured Streaming queries."""
