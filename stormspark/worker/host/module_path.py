"""The module path of a worker process: the folders in which it looks for modules, in order."""

from __future__ import annotations

import logging
import os
import sys
import sysconfig
from collections.abc import Sequence
from itertools import takewhile

from stormspark.working_folder import go_to

__all__ = ["module_path", "on_this_host", "search_like_the_driver"]

_log = logging.getLogger(__name__)


def search_like_the_driver(drivers: Sequence[str], working_folder: str | None = None) -> None:
    """Let this process find the modules that the driver finds. ``drivers`` is the driver's ``sys.path``.

    If a ``working_folder`` is given, also go there; see `stormspark.working_folder.go_to`.
    """
    try:
        working = os.getcwd()
    except FileNotFoundError:  # somebody has removed it
        working = ""
    sys.path[:] = module_path(sys.path, on_this_host(drivers), sysconfig.get_path("stdlib"), working)
    if working_folder is not None and (problem := go_to(working_folder)) is not None:
        _log.warning("%s", problem)


def on_this_host(folders: Sequence[str]) -> list[str]:
    """Return those of the driver's folders that are on this host, too."""
    return [folder for folder in folders if _is_here(folder)]


def _is_here(folder: str) -> bool:
    """Return whether a folder is on this host. It may be in a zip file."""
    if os.path.exists(folder):
        return True
    around = os.path.dirname(folder)
    while around != os.path.dirname(around) and not os.path.exists(around):
        around = os.path.dirname(around)
    return os.path.isfile(around)


def module_path(own: Sequence[str], drivers: Sequence[str], library: str, working: str) -> list[str]:
    """Return a module path on which a worker finds the modules that the driver finds.

    ``own`` is the path with which the worker process has started, ``library`` is the folder of its standard library, and
    ``working`` is its working directory. ``drivers`` has those folders of the driver's path that are on the worker's host.

    1. First come the files that Spark has shipped.
    2. Then come the driver's folders, in the driver's order.
    3. Then come the worker's own folders that the driver does not search.

    Spark starts its Python processes with ``-m``, so their working directory is the first folder on their path. If it is not on
    the driver's path, it comes last. It may have a module with the name of the topology's file, or of the standard library.

    >>> own = ["/here", "/shipped", "/project", "/lib", "/packages"]
    >>> module_path(own, ["/project", "/here", "/lib", "/packages"], "/lib", "/here")
    ['/shipped', '/project', '/here', '/lib', '/packages']
    >>> module_path(own, ["/project", "/lib", "/packages"], "/lib", "/here")
    ['/shipped', '/project', '/lib', '/packages', '/here']

    >>> module_path(["/here", "/project", "/lib", "/packages"], ["/project", "/lib", "/packages", "/here"], "/lib", "/here")
    ['/project', '/lib', '/packages', '/here']

    If the worker has packages of its own, as in another virtual environment, they come before the driver's packages:

    >>> module_path(["/shipped", "/lib", "/own-packages"], ["/project", "/lib", "/packages"], "/lib", "/here")
    ['/shipped', '/project', '/lib', '/own-packages', '/packages']

    Another Python than the driver's keeps its own standard library first:

    >>> module_path(["/shipped", "/lib", "/packages"], ["/project", "/drivers-lib"], "/lib", "/here")
    ['/shipped', '/lib', '/packages', '/project', '/drivers-lib']
    """
    at = own.index(library) if library in own else len(own)
    libraries = own[at:]
    shipped = [folder for folder in own[:at] if folder not in drivers and folder != working]
    if set(libraries) <= set(drivers):
        first = list(drivers)
    elif library in drivers:
        first = list(takewhile(lambda folder: folder not in libraries, drivers))
    else:
        first = []
    last = [working] if working in own else []
    return list(dict.fromkeys([*shipped, *first, *libraries, *drivers, *last]))
