"""Petrel's builder."""

from stormspark.compat.petrel.builder import TopologyBuilder

__all__ = ["TopologyBuilder"]
