"""The options of ``spark-submit`` that commands which start Spark take, spelled as there.

What is wrong with a local file is said before Spark starts.
"""

from __future__ import annotations

import functools
import glob
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

import click

from stormspark.errors import InvalidTopologyError
from stormspark.flux.substitution import read_properties
from stormspark.launcher import is_url
from stormspark.user_code import put_first

__all__ = [
    "SparkOptions",
    "brings_jars",
    "fetches_jars",
    "local_path",
    "ships_modules",
    "starts_spark",
    "submits",
]

_R = TypeVar("_R")

#: Options that become settings of Spark.
_KEYS = {
    "packages": "spark.jars.packages",
    "exclude_packages": "spark.jars.excludes",
    "repositories": "spark.jars.repositories",
    "jars": "spark.jars",
    "py_files": "spark.submit.pyFiles",
    "files": "spark.files",
    "archives": "spark.archives",
}

#: Options whose value is that of one setting.
_RESOURCES = {
    "driver_memory": "spark.driver.memory",
    "driver_class_path": "spark.driver.extraClassPath",
    "driver_java_options": "spark.driver.extraJavaOptions",
    "executor_memory": "spark.executor.memory",
    "executor_cores": "spark.executor.cores",
    "num_executors": "spark.executor.instances",
    "total_executor_cores": "spark.cores.max",
    "queue": "spark.yarn.queue",
}


class SparkOptions(NamedTuple):
    """What the options say: settings of Spark, and whether Delta was asked for."""

    conf: Mapping[str, str]
    delta: bool
    #: Whether one of the options means nothing without Spark. Modules can be shipped to any engine.
    need_spark: bool


def _files(context: click.Context, option: click.Parameter, given: str | None) -> str | None:
    """Check that each local file of a list is there, and write patterns out as Spark does (``lib/*.jar``)."""
    if given is None:
        return None
    found: list[str] = []
    for entry in filter(None, map(str.strip, given.split(","))):
        path, alias = local_path(entry), ""
        if path is not None and option.name in ("files", "archives"):
            path, hash_, alias = path.partition("#")
            alias = hash_ + alias
        if path is None or os.path.exists(path):
            found.append(entry)
        elif matching := sorted(glob.glob(path)):
            found += (one + alias for one in matching)
        else:
            what = "matches no file" if glob.has_magic(path) else "does not exist"
            msg = f"{entry} {what} on this host, as seen from {os.getcwd()}"
            raise click.BadParameter(msg)
    return ",".join(found)


def local_path(entry: str) -> str | None:
    """Return the path of a file on this host; None for a URL that only Spark can open.

    >>> local_path("lib/a.jar"), local_path("file:/lib/a.jar"), local_path("hdfs://name/a.jar")
    ('lib/a.jar', '/lib/a.jar', None)
    """
    if entry.startswith("file:"):
        return unquote(urlsplit(entry).path)
    return None if is_url(entry) else entry


def _properties(context: click.Context, option: click.Parameter, given: Path | None) -> dict[str, str]:
    if given is None:
        return {}
    try:
        found = read_properties(given)
    except InvalidTopologyError as error:
        raise click.BadParameter(str(error)) from error
    strange = [key for key in found if not key.startswith("spark.")]
    if strange:
        click.echo(
            f"Warning: {given} sets {', '.join(strange[:5])}{', ...' if len(strange) > 5 else ''}, which Spark ignores: only "
            f"keys that begin with spark. count",
            err=True,
        )
    return {key: value for key, value in found.items() if key not in strange}


def _deploy_mode(context: click.Context, option: click.Parameter, given: str | None) -> None:
    if given not in (None, "client"):
        msg = "stormspark run is the driver and runs here (client); `stormspark submit` starts one on the cluster"
        raise click.BadParameter(msg)


_ships = click.option(
    "--py-files",
    metavar="FILES",
    callback=_files,
    help="Zip, egg and .py files, with commas between them, whose modules this program, executors and workers can import.",
)
_jars = (
    click.option(
        "--packages",
        metavar="COORDINATES",
        help="Jars that Spark fetches from Maven repositories, as group:artifact:version, with commas between them.",
    ),
    click.option(
        "--exclude-packages",
        metavar="COORDINATES",
        help="What not to fetch with --packages, as group:artifact.",
    ),
    click.option("--repositories", metavar="URLS", help="More Maven repositories for --packages."),
    click.option(
        "--jars",
        metavar="FILES",
        callback=_files,
        help="Jars for the driver and the executors, with commas between them.",
    ),
    click.option(
        "--properties-file",
        "properties",
        type=click.Path(dir_okay=False, exists=True, path_type=Path),
        callback=_properties,
        help="A file with settings of Spark, like spark-defaults.conf. Options and -c count more.",
    ),
)
_more = (
    click.option(
        "--files",
        metavar="FILES",
        callback=_files,
        help="Files for the working directory of each executor, with commas between them.",
    ),
    click.option(
        "--archives",
        metavar="FILES",
        callback=_files,
        help="Archives that are unpacked into the working directory of each executor, such as env.tar.gz#env.",
    ),
    click.option(
        "--delta",
        is_flag=True,
        help="Bring Delta's jars and settings for Spark. This is the default if a component or the state table needs them.",
    ),
)
_resources = (
    *(
        click.option(f"--{name.replace('_', '-')}", metavar="VALUE", help=f"The same as -c {key}=VALUE.")
        for name, key in _RESOURCES.items()
    ),
)
_only_here = click.option("--deploy-mode", expose_value=False, callback=_deploy_mode, hidden=True)


_delta = _more[-1]


def starts_spark(command: Callable[..., _R]) -> Callable[..., _R]:
    """Declare all options for a command that runs a topology on Spark, and pass them as ``conf`` and ``options_of_spark``."""
    return _declare(command, (*_jars, _ships, *_more, *_resources, _only_here))


def submits(command: Callable[..., _R]) -> Callable[..., _R]:
    """Declare the options for a command that submits a topology, and pass them as ``conf`` and ``options_of_spark``."""
    return _declare(command, (*_jars, _ships, *_more, *_resources))


def brings_jars(command: Callable[..., _R]) -> Callable[..., _R]:
    """Declare the options for a command that only reads with Spark, and add them to its ``conf``."""
    return _declare(command, _jars, passes=False)


def fetches_jars(command: Callable[..., _R]) -> Callable[..., _R]:
    """Declare the options for a command that fetches jars, and pass them as ``options_of_spark``."""
    return _declare(command, (*_jars[:3], _delta))


def ships_modules(command: Callable[..., _R]) -> Callable[..., _R]:
    """Declare ``--py-files`` alone, for a command that loads a topology."""
    return _declare(command, (_ships,), passes=False)


def _declare(
    command: Callable[..., _R], options: tuple[Callable[..., Any], ...], *, passes: bool = True
) -> Callable[..., _R]:
    @functools.wraps(command)
    def wrapped(**kwargs: Any) -> _R:
        conf: dict[str, str] = kwargs.pop("properties", {})
        need_spark = bool(conf)
        # As for spark-submit, an option counts more than --conf, and --conf more than the file.
        given = kwargs.get("conf") or {}
        conf |= {key: str(value) for key, value in given.items() if key.startswith("spark.")}
        for name, key in (_KEYS | _RESOURCES).items():
            if value := kwargs.pop(name, None):
                conf[key] = value
                need_spark |= name != "py_files"
        if modules := conf.get(_KEYS["py_files"]):
            _search(modules)
        if "conf" in kwargs:
            kwargs["conf"] = {**given, **conf}
        delta = kwargs.pop("delta", False)
        if not passes:
            return command(**kwargs)
        return command(**kwargs, options_of_spark=SparkOptions(conf, delta, need_spark or delta))

    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped


def _search(modules: str) -> None:
    """Let this program import what is shipped, because the topology's file may need it before Spark starts."""
    for entry in reversed(modules.split(",")):
        path = local_path(entry)
        if path is None:
            continue
        if path.endswith(".py"):
            sys.path.append(str(Path(path).absolute().parent))
        else:
            put_first(Path(path).absolute())
