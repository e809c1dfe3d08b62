"""Finds the classes that ``topology.auto.task.hooks`` names (J21)."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["hook_class"]


def hook_class(name: str) -> Any:
    """Import and return what ``name`` names, as ``module:Class`` or ``module.Class``. Raises any error of the import.

    >>> hook_class("stormspark.api:TaskHook").__name__
    'TaskHook'
    """
    module, _, cls = name.partition(":") if ":" in name else name.rpartition(".")
    return getattr(importlib.import_module(module), cls)
