"""What a task of the preflight does. It may run in a Python without stormspark, so Spark ships the function itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["look_around"]


def look_around() -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Make the function. It is a nested one, so that it is pickled as code, and it imports only what Python itself has.

    It tells which of the ``packages`` and ``modules`` that it is asked for can't be found, which stormspark is there, and why the
    ``driver`` can't be reached: a pickled tuple (endpoint, key, seconds), or None.
    """

    def look(asked: Mapping[str, Any]) -> dict[str, Any]:
        import importlib
        import os
        import pickle
        import socket
        import sys
        import sysconfig

        def is_found(name: str) -> bool:
            """Whether a module is there. Its package is not imported for that, because this may print, connect and wait."""
            place: Any = None
            whole = ""
            for part in name.split("."):
                whole = f"{whole}.{part}" if whole else part
                if whole in sys.modules:
                    place = getattr(sys.modules[whole], "__path__", None)
                    continue
                finders = (getattr(finder, "find_spec", None) for finder in sys.meta_path)
                specs = (find(whole, place) for find in finders if find is not None)
                try:
                    found = next((spec for spec in specs if spec is not None), None)
                except ImportError:  # a finder that forbids it
                    return False
                if found is None:
                    return False
                place = found.submodule_search_locations
                if place is None and whole != name:
                    return False
            return True

        def is_missing(name: str) -> bool:
            if is_found(name):
                return False
            try:
                importlib.import_module(name)
            except ImportError:
                return True
            except Exception:  # it is there, and the worker will say what is wrong with it
                return False
            return False

        told: dict[str, Any] = {
            "host": socket.gethostname(),
            "python": sys.executable,
            "python_version": "{}.{}.{}".format(*sys.version_info),
            "packages": [name for name in asked["packages"] if not is_found(name)],
            "stormspark": None,
            "why": "",
            "modules": [],
            "network": "",
        }
        if told["packages"]:
            told["stormspark"] = "" if is_found("stormspark") else None
            return told
        try:
            told["stormspark"] = importlib.import_module("stormspark").__version__
        except ImportError as error:
            told["why"] = str(error)
            return told
        if told["stormspark"] != asked["version"]:
            return told
        from stormspark.worker.host.link import dial
        from stormspark.worker.host.module_path import module_path, on_this_host

        before = sys.path[:]
        # The module path that a worker on this host will have.
        sys.path[:] = module_path(
            before, on_this_host(asked["path"]), sysconfig.get_path("stdlib"), os.getcwd()
        )
        try:
            importlib.invalidate_caches()
            told["modules"] = [name for name in asked["modules"] if is_missing(name)]
        finally:
            sys.path[:] = before
        if asked["driver"] is not None:
            endpoint, key, seconds = pickle.loads(asked["driver"])
            try:
                dial(endpoint, key, seconds).close()
            except Exception as error:
                told["network"] = str(error) or type(error).__name__
        return told

    return look
