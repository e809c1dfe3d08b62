"""Checks of this Python and of the packages that it has."""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Iterable
from importlib import metadata

from stormspark.doctor.result import Result, Status
from stormspark.extras import EXTRAS, first_missing
from stormspark.tuple_path import compiled

__all__ = ["LEAST", "check_extras", "check_packages", "check_python", "check_tuple_path", "version_of"]

#: The oldest versions that work. Older ones lack what Spark and stormspark need. ``pyproject.toml`` has the same.
LEAST = {
    "click": "8.1",
    "cloudpickle": "3.0",
    "deltalake": "1.6",
    "greenlet": "3.1",
    "msgspec": "0.19",
    "numpy": "2.1",
    "pandas": "2.2",
    "pyarrow": "18",
    "rich": "13.7",
}
_LEAST_PYTHON = (3, 11)


def check_python(version: tuple[int, int, int] = sys.version_info[:3]) -> Result:
    """Is this Python new enough?

    >>> print(check_python((3, 9, 2)).found)
    Python 3.9.2, but stormspark needs Python 3.11 or later
    """
    shown = f"Python {'.'.join(map(str, version))}"
    if version < _LEAST_PYTHON:
        least = ".".join(map(str, _LEAST_PYTHON))
        return Result(
            "Python",
            Status.FAILED,
            f"{shown}, but stormspark needs Python {least} or later",
            f"make an environment with a newer one: python{least} -m venv .venv",
        )
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return Result(
            "Python", Status.WARNING, f"{shown} without the GIL, which stormspark was not tried with"
        )
    return Result("Python", Status.OK, f"{shown} ({sys.executable})")


def check_packages(names: Iterable[str] = tuple(LEAST)) -> Result:
    """Are the installed packages new enough?"""
    there = {name: version for name in names if (version := version_of(name)) is not None}
    old = [
        f"{name} {version} (at least {LEAST[name]} is needed)"
        for name, version in there.items()
        if _two_of(version) < _two_of(LEAST[name])
    ]
    if old:
        return Result(
            "packages", Status.FAILED, f"too old: {', '.join(old)}", "pip install --upgrade 'stormspark[all]'"
        )
    return Result("packages", Status.OK, ", ".join(f"{name} {version}" for name, version in there.items()))


def check_extras() -> Result:
    """Which extras are there? None is a must."""
    lacking: dict[str, str] = {}
    for module, extra in EXTRAS.items():
        if extra not in lacking and first_missing([module]) is not None:
            lacking[extra] = module
    there = sorted(set(EXTRAS.values()) - set(lacking))
    shown = f"installed: {', '.join(there) or 'none'}"
    if not lacking:
        return Result("extras", Status.OK, shown)
    return Result(
        "extras",
        Status.NOTE,
        f"{shown}; not: {', '.join(sorted(lacking))}",
        f"what needs one says so; pip install 'stormspark[{sorted(lacking)[0]}]' brings it",
    )


def check_tuple_path() -> Result:
    """Is the tuple path compiled? It also works without, three times slower."""
    if compiled():
        return Result("tuple path", Status.OK, "compiled")
    return Result(
        "tuple path",
        Status.NOTE,
        "Python, so a core acks about a third as many tuples per second as if it were compiled",
        "install a wheel for this platform, or a C compiler and then stormspark again (a checkout: make setup)",
    )


def version_of(name: str) -> str | None:
    """Return the version of an installed package; None if it is not installed, or nobody knows the version."""
    try:
        return metadata.version(name)
    except (metadata.PackageNotFoundError, KeyError):
        return None


def _two_of(version: str) -> list[int]:
    """Return the first two numbers of a version."""
    return [int(digits) for digits in re.findall(r"\d+", version)[:2]]
