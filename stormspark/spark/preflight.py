"""The preflight: a look at the Spark executors before the first batch, in one Spark job with one task per executor.

What an executor lacks does not come by trying again: another Python, a package, the user's modules, a path to the driver's port.
So the topology stops with one message, which names the setting to make. Whether workers see the checkpoint folder is found out
when they start (`stormspark.checkpoint.shared_folder`).

In this module, "executor" means a Spark executor.
"""

from __future__ import annotations

import logging
import os
import pickle
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cloudpickle
from pyspark import SparkContext

from stormspark.doctor import LEAST
from stormspark.errors import UnsupportedEnvironmentError
from stormspark.plan.physical import PhysicalPlan
from stormspark.spark.forwarder import Attempt
from stormspark.spark.pickled_modules import modules_in
from stormspark.spark.preflight_task import look_around

__all__ = ["PACKAGES", "Preflight", "explanation", "problem_on"]

_log = logging.getLogger(__name__)

#: What worker processes import of other projects, as modules.
PACKAGES = ("cloudpickle", "deltalake", "greenlet", "numpy", "pyarrow")
#: A task tries to reach the driver for at most this long.
_REACH_SECS = 8.0
#: What stormspark brings under the names of other tools. Workers find it only when they load a component that needs it.
_OF_FRONT_ENDS = {"heron", "heronpy", "petrel", "pyheron", "pystorm", "storm_thrift", "streamparse"}
#: Modules that pickles name, and that are looked for otherwise or are not the user's.
_NOT_THE_USERS = {
    *sys.stdlib_module_names, *PACKAGES, *_OF_FRONT_ENDS, "__main__", "py4j", "pyspark", "stormspark",
}  # fmt: skip
#: What Spark says of a Python that ends at once, with what that wrote to its standard error.
_DOES_NOT_START = re.compile(
    r"Error from python worker:\n(.*\S.*?)\nPYTHONPATH was:.{0,9999}?reading the port number", re.DOTALL
)
_MAY_PASS = re.compile(
    r"memory|temporarily|No space left|Too many open files|MemoryError|can't start new thread"
)
_ENVIRONMENT = "or ship an environment (venv-pack -o env.tar.gz; --archives env.tar.gz#env, PYSPARK_PYTHON=./env/bin/python)"


class Preflight:
    """The preflight of one topology. ``ended`` returns whether the topology is to end, and nobody needs the result."""

    def __init__(self, context: SparkContext, plan: PhysicalPlan, ended: Callable[[], bool]) -> None:
        self._context, self._plan, self._ended = context, plan, ended
        #: The group of its Spark job. The placement sets it, and may cancel the job.
        self.group = ""
        #: What the topology waits for while the job runs, in words. It runs for ever if a cluster has no free core.
        self.waits_for = ""
        self._done = False
        #: For each module of the user: a hash of its source here, and its file.
        self._sources: Mapping[str, str] = {}

    def run(self, attempt: Attempt, executors: int) -> None:
        """Look at this many executors, once for each topology. Raises `UnsupportedEnvironmentError`."""
        if self._done:
            return
        self._done = True
        asked = self._asked(attempt)
        context: Any = self._context
        context.setJobGroup(self.group, f"stormspark: preflight of {self._plan.topology}")
        self.waits_for = (
            f"Spark looks at {executors} executor{'s' * (executors != 1)}, with a task that needs a free core"
        )
        try:
            rows = context.parallelize(range(executors), executors)
            found: list[dict[str, Any]] = rows.mapPartitions(_task(asked)).collect()
        except Exception as error:
            if self._ended():
                return
            self.raise_hopeless(error)
            _log.info("%s: the preflight failed: %s", self._plan.topology, error)
            return
        finally:
            self.waits_for = ""
            for name in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
                context.setLocalProperty(name, None)
        problems = list(dict.fromkeys(filter(None, (problem_on(one, attempt) for one in found))))
        if problems:
            raise UnsupportedEnvironmentError(problems[0])
        for warning in dict.fromkeys(filter(None, (_other_source(one, self._sources) for one in found))):
            _log.warning("%s: %s", self._plan.topology, warning)

    def raise_hopeless(self, error: Exception) -> None:
        """Raise `UnsupportedEnvironmentError` if the ``error`` of a Spark job would come again and again."""
        told = explanation(str(error), self._context.pythonExec)
        if told is not None:
            raise UnsupportedEnvironmentError(told) from error

    def _asked(self, attempt: Attempt) -> dict[str, Any]:
        asked: dict[str, Any] = {
            "version": _version(),
            "packages": PACKAGES,
            "least": {},
            "modules": self._users_modules(),
            "path": [os.path.abspath(entry) for entry in sys.path],
            "driver": None,
        }
        # What this program itself does not find has come into it some other way, and may do so there.
        here = look_around()(asked)
        asked["packages"] = [name for name in PACKAGES if name not in here["packages"]]
        asked["least"] = {name: LEAST[name] for name in asked["packages"]}
        asked["modules"] = [name for name in asked["modules"] if name not in here["modules"]]
        self._sources = here["sources"]
        asked["driver"] = pickle.dumps((attempt.nimbus, attempt.key, min(attempt.silence_secs, _REACH_SECS)))
        return asked

    def _users_modules(self) -> list[str]:
        names = modules_in(cloudpickle.dumps(self._plan))
        return sorted(name for name in names if name.partition(".")[0] not in _NOT_THE_USERS)


def problem_on(found: Mapping[str, Any], attempt: Attempt | None) -> str | None:
    """Return the message about what a task has found; None if all is well. ``attempt`` is what the task was told to reach."""
    python = f"{found['python']} (Python {found['python_version']}) on host {found['host']}"
    lacks = [*found["packages"], *(["stormspark"] if found["stormspark"] is None else [])]
    if found["older"]:
        older = [
            f"{name} {version} (at least {LEAST[name]} is needed)" for name, version in found["older"].items()
        ]
        return _set_python(f"Spark's executors use {python}, which has {_listed(older)}")
    if lacks == ["stormspark"]:
        state = (
            f"where stormspark can't be imported ({found['why']})"
            if found["why"]
            else "which has no stormspark"
        )
        return (
            f"Spark's executors use {python}, {state}: install stormspark {_version()} there, {_ENVIRONMENT}"
        )
    if lacks:
        return _set_python(f"Spark's executors use {python}, which has no {_listed(lacks)}")
    if found["stormspark"] != _version():
        return (
            f"Spark's executors use stormspark {found['stormspark']} ({python}), but this program uses {_version()}: install "
            f"the same version there, {_ENVIRONMENT}"
        )
    if found["modules"]:
        return _ship(found["modules"], found["host"])
    if found["network"] and attempt is not None:
        return (
            f"the driver can't be reached from host {found['host']} at {_address(attempt)}: {found['network']}. Let this "
            f"port through (stormspark.nimbus.port makes it a fixed one), or set spark.driver.host to an address of the "
            f"driver that executors reach (docs/network.md)"
        )
    return None


def _task(asked: Mapping[str, Any]) -> Callable[[Iterable[int]], list[dict[str, Any]]]:
    look = look_around()

    def run(rows: Iterable[int]) -> list[dict[str, Any]]:
        return [look(asked) for _ in rows]

    return run  # both functions are pickled as code, because executors may have no stormspark


def explanation(error: str, python: str) -> str | None:
    """Explain the error of a Spark job that can't get better. None for any other error. ``python`` is what Spark starts.

    >>> explanation("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.13 than that in driver: 3.11", "python3")
    ... # doctest: +ELLIPSIS
    "Spark's executors run Python 3.13 (python3), but this program runs Python 3...: set PYSPARK_PYTHON ..."
    >>> explanation("java.io.IOException: Broken pipe", "python3")

    A Python that ends before it has reported its port says why on its standard error, which Spark hands on. If it lacks memory,
    processes or files, the next one may start.
    """
    other = re.search(r"PYTHON_VERSION_MISMATCH\].*?(\d+\.\d+)", error, re.DOTALL)
    if other is not None:
        mine = "{}.{}".format(*sys.version_info)
        return _set_python(
            f"Spark's executors run Python {other[1]} ({python}), but this program runs Python {mine}"
        )
    not_run = re.search(r'Cannot run program "([^"]+)"[^:]*: (?:error=\d+, )?([^\n]+)', error)
    if not_run is not None and not_run[1].startswith("./"):
        return (
            f"Spark's executors can't run Python as {not_run[1]} ({not_run[2].strip()}): either no archive is unpacked there, "
            f"or the Python in it is a link to one that their hosts lack. venv-pack makes such a link: install the same "
            f"Python there, at the same path, or pack the environment with conda-pack, which packs Python, too"
        )
    if not_run is not None:
        return _set_python(f"Spark's executors can't run Python as {not_run[1]} ({not_run[2].strip()})")
    lacks = re.search(r"No module named '?([\w.]+)'?", error)
    if lacks is not None and lacks[1].partition(".")[0] in {*PACKAGES, "pandas", "pyspark", "stormspark"}:
        return _set_python(f"the Python of Spark's executors ({python}) has no {lacks[1].partition('.')[0]}")
    told = _DOES_NOT_START.search(error)
    if told is not None and not _MAY_PASS.search(told[1]):
        lines = [line.strip() for line in told[1].splitlines() if line.strip()]
        why = lines[-1 if "Traceback (most recent call last)" in told[1] else 0]
        return _set_python(f"the Python of Spark's executors ({python}) does not start ({why})")
    return None


def _version() -> str:
    """Return stormspark's version. The root of the package, which has it, imports more than this layer may import."""
    return str(sys.modules["stormspark"].__version__)


def _set_python(what: str) -> str:
    version = "{}.{}".format(*sys.version_info)
    return (
        f"{what}: set PYSPARK_PYTHON (or spark.pyspark.python) to a Python {version} on the executors' hosts that has what this "
        f"program's has ({sys.executable}), {_ENVIRONMENT}"
    )


def _other_source(found: Mapping[str, Any], mine: Mapping[str, str]) -> str | None:
    """Return a warning if a module of the user is another one on the executors. It may be an old copy that was shipped."""
    for name, theirs in found["sources"].items():
        (hash_, _, file), (hash_here, _, file_here) = theirs.partition(" "), mine.get(name, "").partition(" ")
        if hash_ and hash_here and hash_ != hash_here:
            return (
                f"the module {name!r} is not the same on the executors' host {found['host']} ({file}) as here ({file_here}), and "
                f"components run the code that is there: ship this one (--py-files), or remove the other one"
            )
    return None


def _ship(modules: Sequence[str], host: str) -> str:
    """Say how to ship the modules that executors do not find."""
    tops = list(dict.fromkeys(name.partition(".")[0] for name in modules))
    files: list[str] = []
    zips: list[str] = []
    for top in tops:
        file = getattr(sys.modules.get(top), "__file__", None)
        folder = next(iter(getattr(sys.modules.get(top), "__path__", ())), None)
        if folder is not None:
            files.append(f"{top}.zip")
            zips.append(f"(cd {Path(folder).parent} && zip -r {Path.cwd() / top}.zip {top})")
        else:
            files.append(str(file) if file else f"{top}.py")
    first = f"{' && '.join(zips)}, then " if zips else ""
    return (
        f"Python on the executors' host {host} does not find {_listed([repr(name) for name in modules])}, which the topology's "
        f"components come from: ship it, {first}--py-files {','.join(files)} (with a session of your own: "
        f"spark.sparkContext.addPyFile)"
    )


def _address(attempt: Attempt) -> str:
    tcp = attempt.nimbus.tcp
    return f"{tcp[0]}:{tcp[1]}" if tcp is not None else attempt.nimbus.unix


def _listed(names: Sequence[str]) -> str:
    """Join names as people do.

    >>> _listed(["a"]), _listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
