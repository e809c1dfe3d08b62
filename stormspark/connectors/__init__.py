"""Spouts and bolts that read and write what is outside: streams of Spark."""

from stormspark.connectors.dataframe import DataFrameSpout

__all__ = ["DataFrameSpout"]
