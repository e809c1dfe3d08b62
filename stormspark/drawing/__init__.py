"""Draws graphs as SVG and writes tables as HTML, for notebooks. It knows no topologies: callers say what stands in a box.

A library for this would need a binary (Graphviz) or scripts from the internet (Mermaid), and a notebook may have neither.
"""

from stormspark.drawing.graph import Box, Link
from stormspark.drawing.html import details, escaped, page, paragraph, table
from stormspark.drawing.placed import Placed, Sized, place_graph
from stormspark.drawing.svg import MOST_DRAWN, graph_svg

__all__ = [
    "MOST_DRAWN",
    "Box",
    "Link",
    "Placed",
    "Sized",
    "details",
    "escaped",
    "graph_svg",
    "page",
    "paragraph",
    "place_graph",
    "table",
]
