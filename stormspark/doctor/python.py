"""Checks of this Python and of the packages that it has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping

from stormspark.doctor.result import Result, Status
from stormspark.extras import EXTRAS, first_missing, version_of
from stormspark.tuple_path import compiled, why_sources

__all__ = [
    "BELOW",
    "LEAST",
    "check_executors_python",
    "check_extras",
    "check_packages",
    "check_python",
    "check_tuple_path",
]

#: What every topology needs.
_BASE = {
    "click": "8.1",
    "cloudpickle": "3.0",
    "greenlet": "3.1",
    "httpx": "0.27",
    "msgspec": "0.19",
    "numpy": "2.1",
    "prometheus-client": "0.22",
    "pyyaml": "6.0",
    "rich": "13.7",
    "starlette": "0.40",
    "uvicorn": "0.30",
}
#: What topologies need on Spark, if it is installed there.
_WITH_SPARK = {"deltalake": "1.6", "pandas": "2.2", "pyarrow": "18"}
#: What some components need.
_BY_COMPONENTS = {
    "basilisp": "0.5",
    "confluent-kafka": "2.6",
    "cryptography": "42",
    "fissix": "24.4",
    "msgpack": "1.0",
    "opentelemetry-exporter-otlp-proto-http": "1.30",
    "redis": "5",
    "sqlalchemy": "2.0",
    "statsd": "4.0",
    "tree-sitter": "0.25",
    "tree-sitter-java": "0.23.5",
}
#: The oldest versions that work. Older ones lack what Spark and stormspark need. ``pyproject.toml`` has the same, and that of
#: Spark itself is in `stormspark.doctor.spark`.
LEAST = _BASE | _WITH_SPARK | _BY_COMPONENTS
#: The first versions that Spark does not support. ``pyproject.toml`` has them in the extra ``spark``.
BELOW = {"pandas": "3"}
#: The names of modules, where they differ from the packages' names.
_MODULES = {"prometheus-client": "prometheus_client", "pyyaml": "yaml"}
_LEAST_PYTHON = (3, 11)
#: A Python that does not answer within this time is stuck.
_ANSWER_SECS = 60.0


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


def check_executors_python(environment: Mapping[str, str] | None = None) -> Result | None:
    """Does PYSPARK_PYTHON name a Python of this program's version? Spark's executors run it, also those on this host.

    None if nothing is named, or a relative path, which an archive brings to the executors (``./env/bin/python``).

    >>> print(check_executors_python({"PYSPARK_PYTHON": "/nowhere/python3"}).found)
    PYSPARK_PYTHON=/nowhere/python3 can't be run on this host
    """
    given = os.environ if environment is None else environment
    name = given.get("PYSPARK_PYTHON")
    if not name or (os.sep in name and not os.path.isabs(name)):
        return None
    mine = "{}.{}".format(*sys.version_info)
    advice = f"unset it, or name a Python {mine} that has what this program's has ({sys.executable})"
    path = shutil.which(name, path=given.get("PATH"))
    if path is None:
        told = f"PYSPARK_PYTHON={name} can't be run on this host"
        return Result("PYSPARK_PYTHON", Status.WARNING, told, f"for executors on this host: {advice}")
    try:
        done = subprocess.run(
            [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_ANSWER_SECS,
        )
    except subprocess.TimeoutExpired:
        return Result("PYSPARK_PYTHON", Status.FAILED, f"PYSPARK_PYTHON={name} does not answer", advice)
    except OSError as error:  # such as a program for another processor
        told = f"PYSPARK_PYTHON={name} can't run ({error.strerror})"
        return Result("PYSPARK_PYTHON", Status.FAILED, told, advice)
    theirs = done.stdout.strip()
    if done.returncode or not theirs:
        why = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        told = f"PYSPARK_PYTHON={name} does not start ({why[0]})"
        return Result("PYSPARK_PYTHON", Status.FAILED, told, advice)
    if theirs != mine:
        told = f"PYSPARK_PYTHON={name} is Python {theirs}, but this program runs Python {mine}, and Spark needs the same for both"
        return Result("PYSPARK_PYTHON", Status.FAILED, told, advice)
    return Result("PYSPARK_PYTHON", Status.OK, f"{path} (Python {theirs})")


def check_packages(names: Iterable[str] = tuple(LEAST), *, on_spark: bool = True) -> Result:
    """Are the packages that every topology needs there, and are the installed ones new enough?

    The advice names no other package, so that a cluster's Spark and what belongs to it stay as they are.
    """
    asked = list(names)
    there = {name: version for name in asked if (version := version_of(name)) is not None}
    old = [name for name, version in there.items() if _numbers(version) < _numbers(LEAST[name])]
    lacking = [
        name
        for name in asked
        if name in _BASE and name not in there and first_missing([_MODULES.get(name, name)]) is not None
    ]
    if not old and not lacking:
        return Result(
            "packages", Status.OK, ", ".join(f"{name} {version}" for name, version in there.items())
        )
    needed = _BASE | _WITH_SPARK if on_spark else _BASE
    told = [f"{name} {there[name]} (at least {LEAST[name]} is needed)" for name in old]
    found = [f"too old: {', '.join(told)}"] * bool(old) + [f"missing: {', '.join(lacking)}"] * bool(lacking)
    return Result(
        "packages",
        Status.FAILED if any(name in needed for name in (*old, *lacking)) else Status.WARNING,
        "; ".join(found),
        f"pip install --upgrade {' '.join(map(_range, (*old, *lacking)))}",
    )


def _range(name: str) -> str:
    """Return what pip has to get.

    >>> _range("numpy"), _range("pandas")
    ("'numpy>=2.1'", "'pandas>=2.2,<3'")
    """
    below = f",<{BELOW[name]}" if name in BELOW else ""
    return f"'{name}>={LEAST[name]}{below}'"


def check_extras() -> Result:
    """Which extras are there? None is a must."""
    lacking: dict[str, str] = {}
    for module, extra in EXTRAS.items():
        if extra not in lacking and first_missing([module]) is not None:
            lacking[extra] = module
    if first_missing(["pyspark"]) is None:
        # It may be a cluster's own, which the extra would replace. `check_spark` looks at it.
        lacking.pop("spark", None)
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
    if (why := why_sources()) is not None:
        reason, _, advice = why.partition(": ")
        return Result("tuple path", Status.NOTE, f"Python, because {reason}", advice)
    return Result(
        "tuple path",
        Status.NOTE,
        "Python, so a core acks about a third as many tuples per second as if it were compiled",
        "install a wheel for this platform, or a C compiler and then stormspark again (a checkout: make setup)",
    )


def _numbers(version: str) -> list[int]:
    """Return the first three numbers of a version.

    >>> _numbers("18"), _numbers("0.23.5.post1")
    ([18, 0, 0], [0, 23, 5])
    """
    return [int(digits) for digits in [*re.findall(r"\d+", version)[:3], "0", "0", "0"][:3]]
