"""``stormspark submit``: builds the command of ``spark-submit`` for a topology, with the project it belongs to, and runs it.

The driver runs ``stormspark run`` with the same options (`stormspark.cli.submitted`). So a topology that runs here with
``stormspark run`` runs on a cluster without a program of its own.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import quote

import click

from stormspark.cli import submitted
from stormspark.cli.child import ChildProgram
from stormspark.cli.environment_archive import EnvironmentArchive, why_unfit
from stormspark.cli.project_files import Packed, pack
from stormspark.hidden_secrets import without_secrets
from stormspark.launcher import is_url
from stormspark.plan.needs import (
    OVERHEAD,
    OVERHEAD_SETTINGS,
    default_overhead,
    executor_needs,
    limits_memory,
    requested_executors,
    shortfalls,
    submitted_to,
)
from stormspark.plan.physical import PhysicalPlan
from stormspark.working_folder import SHIPPED_PROJECT

__all__ = ["Submission", "arguments_of_run", "check", "command", "submit", "with_room"]

_DEPLOY_MODE = "spark.submit.deployMode"
#: Settings that spark-submit gets as options, because it adds the project to them.
_LISTS = {"spark.submit.pyFiles": "--py-files", "spark.archives": "--archives"}
_PYTHON, _DRIVERS_PYTHON = "spark.pyspark.python", "spark.pyspark.driver.python"
#: Of the driver only. It counts more than files of Log4j.
_LOG_LEVEL = "spark.log.level"
#: What the driver of every topology needs of an environment.
_PACKAGES = ("stormspark", "pandas", "pyarrow")
#: Where a submission from here to Kubernetes puts the project.
_UPLOADS = "spark.kubernetes.file.upload.path"
#: The image of the pods on Kubernetes. There may be another one for the driver, and another one for executors.
_IMAGE = "spark.kubernetes.container.image"
#: Each may name the folder in which Spark finds YARN.
_YARN_FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


@dataclass(frozen=True)
class Submission:
    """A topology to submit."""

    master: str
    #: Whether the driver runs on the cluster (``--deploy-mode cluster``), and not here.
    in_cluster: bool
    project: Path
    #: ``FILE[:NAME]`` as the driver finds it, and the options of ``stormspark run``.
    arguments: Sequence[str]
    #: Settings of Spark.
    conf: Mapping[str, str] = field(default_factory=dict)
    #: Those that spark-submit takes from elsewhere, and that count less.
    defaults: Mapping[str, str] = field(default_factory=dict)
    checkpoint: str | None = None
    environment: EnvironmentArchive | None = None
    name: str = "stormspark"


def check(wanted: Submission, *, is_sent: bool) -> None:
    """Raise `click.UsageError` for what Spark or the cluster would refuse only later, and for settings that options contradict.
    A command that is only printed may be for another host, so this host need not know the cluster unless ``is_sent``.

    Warn of what a restart would lack.
    """
    mode = "cluster" if wanted.in_cluster else "client"
    for key, option, value in (
        ("spark.master", "--master", wanted.master),
        (_DEPLOY_MODE, "--deploy-mode", mode),
    ):
        if (other := wanted.conf.get(key, value)) != value:
            msg = f"-c {key}={other} contradicts {option} {value}: give {option} {other} alone"
            raise click.UsageError(msg)
    msg, place = _why_no_cluster(wanted, is_sent=is_sent) or "", wanted.checkpoint
    if msg:
        raise click.UsageError(msg)
    if not wanted.in_cluster:
        return
    if wanted.master.startswith("spark://"):
        msg = (
            "a standalone cluster of Spark starts no drivers in Python (--deploy-mode cluster): use --deploy-mode client, on a "
            "host that stays"
        )
    elif wanted.master.startswith("local"):
        msg = f"--master {wanted.master} has no cluster to start the driver on: use --deploy-mode client, or `stormspark run`"
    elif wanted.master.startswith("k8s://") and _UPLOADS not in {**wanted.defaults, **wanted.conf}:
        msg = (
            f"Kubernetes fetches the project from storage (--deploy-mode cluster): say where to put it, such as "
            f"-c {_UPLOADS}=s3a://bucket/submitted"
        )
    elif place is None:
        text = "Warning: without --checkpoint, a topology that the cluster starts again begins from nothing"
        click.echo(text, err=True)
    elif not is_url(place):
        msg = (
            f"--checkpoint {place} is a folder of the host on which the driver happens to run, and the next start may be on "
            f"another one: give a URL that the cluster can write to, such as hdfs:///checkpoints/{wanted.name}; if all hosts "
            f"share the folder, write {Path(place).absolute().as_uri()}"
        )
    msg = msg or _why_no_driver(wanted) or ""
    if msg:
        raise click.UsageError(msg)


def _why_no_cluster(wanted: Submission, *, is_sent: bool) -> str | None:
    """Return what is missing without which Spark can't ask the cluster for anything. Spark says so in a trace of Java's stack."""
    if wanted.master.startswith("k8s://"):
        sides = ("driver", "executor") if wanted.in_cluster else ("executor",)
        keys = {**wanted.defaults, **wanted.conf}
        if _IMAGE in keys or all(f"spark.kubernetes.{side}.container.image" in keys for side in sides):
            return None
        return (
            f"Kubernetes starts pods from an image, and none is named: give -c {_IMAGE}=IMAGE, with Spark and a Python of this "
            f"version in it (deploy/kubernetes/Dockerfile makes one)"
        )
    if not is_sent or wanted.master != "yarn" or any(os.environ.get(name) for name in _YARN_FOLDERS):
        return None
    if Path(_conf_folder(), "spark-env.sh").exists():
        return None  # it may name the folder
    return (
        f"Spark needs the cluster's core-site.xml and yarn-site.xml to find YARN, and {' and '.join(_YARN_FOLDERS)} are not set: "
        f"set one to the folder with these files, such as export {_YARN_FOLDERS[0]}=/etc/hadoop/conf"
    )


def _why_no_driver(wanted: Submission) -> str | None:
    """Return why no driver runs in the environment that is sent along. On the cluster it would say so minutes later.

    In client mode the preflight tells it soon, and reading the names in an archive of 180 MB takes two seconds.
    """
    if wanted.environment is None:
        return None
    pythons = {wanted.conf.get(_PYTHON), {**wanted.defaults, **wanted.conf}.get(_DRIVERS_PYTHON)}
    if pythons - {None, wanted.environment.python}:
        return None  # the driver runs in another Python
    # What is pure Python may come as a zip, too.
    is_shipped = "spark.submit.pyFiles" in wanted.conf or (wanted.project / "stormspark").is_dir()
    return why_unfit(wanted.environment, _PACKAGES[is_shipped:])


def with_room(
    plan: PhysicalPlan,
    master: str,
    conf: Mapping[str, str],
    defaults: Mapping[str, str],
    *,
    in_cluster: bool,
) -> Mapping[str, str]:
    """Return Spark's settings ``conf`` with the memory that workers need beside executors, where the cluster limits it.

    What the user has set, here or in the ``defaults``, stays as it is; a warning says if it is too little. A container is never
    made smaller than Spark itself would make it.
    """
    if not limits_memory(master):
        return conf
    everything = {**defaults, **conf}
    is_set = any(key in everything for key in OVERHEAD_SETTINGS)
    everything = {**submitted_to(master, everything, in_cluster=in_cluster)}
    needs = executor_needs(plan, everything, requested_executors(everything, master))
    if not is_set and needs.overhead_mb > default_overhead(everything, master):
        conf, everything = ({**one, OVERHEAD: f"{needs.overhead_mb}m"} for one in (conf, everything))
    for shortfall in shortfalls(needs, everything, master):
        click.echo(f"Warning: {shortfall}", err=True)
    return conf


def command(wanted: Submission, packed: Packed, program: Path) -> list[str]:
    """Return the command of ``spark-submit``."""
    conf = dict(wanted.conf)
    archives = [f"{_location(packed.files)}#{SHIPPED_PROJECT}"]
    modules = [] if packed.modules is None else [_location(packed.modules)]
    if wanted.environment is not None:
        location, name = wanted.environment
        place = location.replace(",", "%2C") if is_url(location) else _location(Path(location))
        archives.append(f"{place}#{name}")
        conf.setdefault(_PYTHON, wanted.environment.python)
    if not wanted.in_cluster:
        conf.setdefault(_DRIVERS_PYTHON, sys.executable)
        if _LOG_LEVEL not in wanted.defaults and not _logs_as_somebody_says(wanted):
            conf.setdefault(_LOG_LEVEL, "WARN")
        if wanted.master.startswith("local"):
            conf.setdefault(_PYTHON, sys.executable)
    lists = {"spark.submit.pyFiles": modules, "spark.archives": archives}
    parts = [_spark_submit(), "--master", wanted.master, "--deploy-mode"]
    parts += ["cluster" if wanted.in_cluster else "client", "--name", wanted.name]
    for key, option in _LISTS.items():
        given = [entry for entry in conf.pop(key, wanted.defaults.get(key, "")).split(",") if entry]
        if entries := [*lists[key], *given]:
            parts += [option, ",".join(entries)]
    for key, value in sorted(conf.items()):
        if key != "spark.master":
            parts += ["--conf", f"{key}={value}"]
    return [*parts, _location(program), "run", *wanted.arguments]


def submit(wanted: Submission, staging: str | None, *, dry_run: bool) -> int:
    """Pack the project, print the command and what it ships, and run it. Return the exit code of ``spark-submit``."""
    check(wanted, is_sent=not dry_run)
    name = f"stormspark-submit-{token_hex(8)}"
    folder = Path(staging or Path(tempfile.gettempdir(), name)).absolute()
    driver = folder / f"{name}.pid"
    made = [one for one in (folder, *folder.parents) if not one.exists()] if staging else []
    is_kept = False
    with ChildProgram() as child:
        try:
            if folder.resolve() == wanted.project:
                msg = (
                    f"--staging {staging} is the project, so each submission would ship the archives of the one before: name "
                    f"another folder"
                )
                raise click.UsageError(msg)
            folder.mkdir(0o777 if staging else 0o700, parents=bool(staging), exist_ok=bool(staging))
            parts = _packed(wanted, folder, says_where=dry_run or bool(staging))
            is_kept = dry_run or bool(staging)
            click.echo(_printed(parts if dry_run else without_secrets(parts)))
            return 0 if dry_run else child.run(parts, None if wanted.in_cluster else driver)
        except OSError as error:
            msg = f"the topology was not submitted: {error}"
            raise click.UsageError(msg) from error
        finally:
            child.leave()
            driver.unlink(missing_ok=True)
            if not is_kept and not staging:
                shutil.rmtree(folder, ignore_errors=True)
            elif not is_kept:
                for one in made:
                    with suppress(OSError):
                        one.rmdir()  # unless it has got something


def _packed(wanted: Submission, folder: Path, *, says_where: bool) -> list[str]:
    """Pack the project into the folder, say what is shipped, and return the command of ``spark-submit``."""
    packed = pack(wanted.project, folder)
    program = folder / "stormspark_job.py"
    program.write_text(submitted.PROGRAM, encoding="utf-8")
    ships = f"ships {wanted.project}: {packed.files_packed} files, {packed.bytes_packed / 1024:.0f} KB"
    click.echo(f"{ships}, in {folder}" if says_where else ships, err=True)
    if packed.secrets:
        names = f"{', '.join(packed.secrets[:5])}{', ...' * (len(packed.secrets) > 5)}"
        text = f"Warning: every host gets {names}, which may be secret: name a folder without it (--project)"
        click.echo(text, err=True)
    for what, paths in packed.left_out.items():
        names = ", ".join(os.fsencode(path).decode(errors="backslashreplace") for path in paths[:5])
        click.echo(f"Warning: {what} are not shipped: {names}{', ...' * (len(paths) > 5)}", err=True)
    return command(wanted, packed, program)


def _spark_submit() -> str:
    """Return the ``spark-submit`` of SPARK_HOME, of PySpark's package, or of the PATH."""
    from stormspark.spark import spark_home

    return os.path.join(spark_home(), "bin", "spark-submit")


def _logs_as_somebody_says(wanted: Submission) -> bool:
    """Whether a file or an option says what Spark's driver logs. If nothing does, it logs hundreds of lines for each topology on
    the terminal, between those of the topology.
    """
    options = [os.environ.get("SPARK_SUBMIT_OPTS", "")]
    options += [one.get("spark.driver.extraJavaOptions", "") for one in (wanted.defaults, wanted.conf)]
    return any("log4j" in one for one in options) or any(
        Path(_conf_folder(), f"log4j2.{kind}").exists() for kind in ("properties", "xml", "yaml", "json")
    )


def _conf_folder() -> Path:
    """Return the folder in which Spark looks for its own settings."""
    return Path(os.environ.get("SPARK_CONF_DIR") or Path(_spark_submit()).parents[1] / "conf")


def _location(path: Path) -> str:
    """Return a file as Spark reads it, also in a list. Spark takes it for a URL, and a comma for the end of an entry."""
    return str(path) if quote(str(path)) == str(path) else path.absolute().as_uri().replace(",", "%2C")


def _printed(parts: Sequence[str]) -> str:
    """Return the command for people and shells, with one option in each line."""
    lines, arguments = [shlex.quote(parts[0])], list(parts[1:])
    while arguments and arguments[0].startswith("--"):
        lines.append(f"{arguments[0]} {shlex.quote(arguments[1])}")
        del arguments[:2]
    lines.append(shlex.join(arguments))
    return " \\\n    ".join(lines)


def arguments_of_run(target: str, options: Mapping[str, Any], conf: Mapping[str, Any]) -> list[str]:
    """Return the arguments of ``stormspark run`` that mean the same as the options of ``stormspark submit``.

    >>> arguments_of_run("flow.py", {"--workers": 2, "--quiet": True, "--arg": ("a", "b"), "--seconds": None}, {"my.key": "2"})
    ['flow.py', '--workers', '2', '--quiet', '--arg', 'a', '--arg', 'b', '-c', 'my.key="2"']
    """
    found = [target]
    for name, value in options.items():
        if value is True:
            found.append(name)
        elif value not in (None, False):
            for one in value if isinstance(value, tuple) else (value,):
                found += [name, str(one)]
    for key, value in conf.items():
        found += ["-c", f"{key}={json.dumps(value)}"]
    return found
