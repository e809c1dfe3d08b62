"""Spouts and bolts that read and write what is outside: streams of Spark."""

from stormspark.connectors.dataframe import DataFrameSpout
from stormspark.connectors.files import FileSpout

__all__ = ["DataFrameSpout", "FileSpout"]
