"""Heron's Streamlet API (G23, G24). A topology is written as operations on streams of elements.

    builder -> streamlets (each is a stage) -> spouts and bolts of `stormspark.api`

`docs/streamlet.md` describes this API. Files written for Heron, with ``heronpy.streamlet`` in their imports, run unchanged.
"""

from stormspark.streamlet.builder import Builder
from stormspark.streamlet.config import Config
from stormspark.streamlet.context import Context
from stormspark.streamlet.operators import ArrayLooper, Generator, TextFileGenerator, TransformOperator
from stormspark.streamlet.resources import Resources
from stormspark.streamlet.runner import Runner
from stormspark.streamlet.streamlet import Streamlet
from stormspark.streamlet.window import KeyedWindow, KeyValue, Window
from stormspark.streamlet.window_config import WindowConfig

__all__ = [
    "ArrayLooper",
    "Builder",
    "Config",
    "Context",
    "Generator",
    "KeyValue",
    "KeyedWindow",
    "Resources",
    "Runner",
    "Streamlet",
    "TextFileGenerator",
    "TransformOperator",
    "Window",
    "WindowConfig",
]
