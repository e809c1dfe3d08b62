"""What a task of the preflight does. It may run in a Python without stormspark, so Spark ships the function itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["look_around"]


def look_around() -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Make the function. It is a nested one, so that it is pickled as code, and it imports only what Python itself has.

    It tells which of the ``packages`` and ``modules`` that it is asked for can't be found, which packages are older than their
    ``least`` version, which stormspark is there, what is in the modules' files, and why the ``driver`` can't be reached: a
    pickled tuple (endpoint, key, seconds), or None.
    """

    def look(asked: Mapping[str, Any]) -> dict[str, Any]:
        import hashlib
        import importlib
        import importlib.metadata
        import os
        import pickle
        import re
        import socket
        import sys
        import sysconfig

        sources: dict[str, str] = {}

        def is_found(name: str) -> bool:
            """Whether a module is there. Its package is not imported for that, because this may print, connect and wait."""
            place: Any = None
            spec: Any = None
            whole = ""
            for part in name.split("."):
                whole = f"{whole}.{part}" if whole else part
                if whole in sys.modules:
                    place = getattr(sys.modules[whole], "__path__", None)
                    spec = getattr(sys.modules[whole], "__spec__", None)
                    continue
                finders = (getattr(finder, "find_spec", None) for finder in sys.meta_path)
                specs = (find(whole, place) for find in finders if find is not None)
                try:
                    spec = next((one for one in specs if one is not None), None)
                except ImportError:  # a finder that forbids it
                    return False
                if spec is None:
                    return False
                place = spec.submodule_search_locations
                if place is None and whole != name:
                    return False
            sources[name] = source_of(spec)
            return True

        def source_of(spec: Any) -> str:
            """Return a hash of the module's source and the file; an empty string if it has none, such as a compiled one."""
            try:
                data = spec.loader.get_data(spec.origin)
            except Exception:
                return ""
            is_text = str(spec.origin).endswith(".py")
            return f"{hashlib.sha256(data).hexdigest()} {spec.origin}" if is_text else ""

        def is_older(name: str, least: str) -> str:
            """Return the version of an installed package if it is older than ``least``; else an empty string.

            What a broken or repeated installation has left may have another version, or none. So nothing is said in doubt.
            """
            # Python's `version` warns of one that lacks, or raises KeyError, or returns None, by its own version.
            found = [one.metadata for one in importlib.metadata.distributions(name=name)]
            versions = [one["Version"] if one is not None and "Version" in one else None for one in found]
            old = [
                text
                for text in versions
                if text and re.match(r"\d+\.\d", text) and two_of(text) < two_of(least)
            ]
            return old[0] if old and len(old) == len(versions) else ""

        def two_of(version: str) -> list[int]:
            """Return the first two numbers of a version."""
            return [int(digits) for digits in re.findall(r"\d+", version)[:2]]

        def is_named(error: Exception, name: str) -> bool:
            return isinstance(error, ModuleNotFoundError) and error.name == name

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
            "older": {},
            "stormspark": None,
            "why": "",
            "modules": [],
            "sources": sources,
            "network": "",
        }
        if told["packages"]:
            told["stormspark"] = "" if is_found("stormspark") else None
            return told
        versions = {name: is_older(name, least) for name, least in asked["least"].items()}
        told["older"] = {name: version for name, version in versions.items() if version}
        if told["older"]:
            return told
        try:
            told["stormspark"] = importlib.import_module("stormspark").__version__
        except Exception as error:
            told["why"] = "" if is_named(error, "stormspark") else f"{type(error).__name__}: {error}"
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
            sources.clear()
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
