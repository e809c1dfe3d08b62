"""The module path of a worker process: the folders in which it looks for modules, in order."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence
from itertools import takewhile

__all__ = ["module_path", "search_like_the_driver"]


def search_like_the_driver(drivers: Sequence[str]) -> None:
    """Let this process find the modules that the driver finds. ``drivers`` is the driver's ``sys.path``."""
    try:
        working = os.getcwd()
    except FileNotFoundError:  # somebody has removed it
        working = ""
    on_this_host = [folder for folder in drivers if os.path.exists(folder)]
    sys.path[:] = module_path(sys.path, on_this_host, sysconfig.get_path("stdlib"), working)


def module_path(own: Sequence[str], drivers: Sequence[str], library: str, working: str) -> list[str]:
    """Return a module path on which a worker finds the modules that the driver finds.

    ``own`` is the path with which the worker process has started, ``library`` is the folder of its standard library, and
    ``working`` is its working directory. ``drivers`` has those folders of the driver's path that are on the worker's host.

    1. First come the files that Spark has shipped.
    2. Then come the folders that the driver searches before the standard library, in the driver's order.
    3. Then comes the rest of the worker's own path, and then the rest of the driver's.

    Spark starts its Python processes with ``-m``, so their working directory is the first folder on their path. If it is not on
    the driver's path, it comes last. It may have a module with the name of the topology's file.

    >>> own = ["/here", "/shipped", "/project", "/lib", "/packages"]
    >>> module_path(own, ["/project", "/here", "/lib", "/packages"], "/lib", "/here")
    ['/shipped', '/project', '/here', '/lib', '/packages']
    >>> module_path(own, ["/project", "/lib", "/packages"], "/lib", "/here")
    ['/shipped', '/project', '/lib', '/packages', '/here']

    Another Python than the driver's keeps its own standard library first:

    >>> module_path(["/shipped", "/lib", "/packages"], ["/project", "/drivers-lib"], "/lib", "/here")
    ['/shipped', '/lib', '/packages', '/project', '/drivers-lib']
    """
    at = own.index(library) if library in own else len(own)
    libraries = set(own[at:])
    shipped = [folder for folder in own[:at] if folder not in drivers and folder != working]
    same_python = any(folder in libraries for folder in drivers)
    first = list(takewhile(lambda folder: folder not in libraries, drivers)) if same_python else []
    last = [working] if working in own and working not in drivers else []
    others = [folder for folder in own if folder not in last]
    return list(dict.fromkeys([*shipped, *first, *others, *drivers, *last]))
