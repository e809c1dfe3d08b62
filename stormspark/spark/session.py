"""Spark sessions: starts a local session for a topology, and checks that a user's session can run one.

A session that the user has made stays as it is. A session that this module starts is set up for small, frequent micro-batches on
one host.
"""

from __future__ import annotations

import atexit
import difflib
import logging
import os
import re
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from stormspark.config import DELTA_PACKAGE, Settings
from stormspark.doctor import (
    Result,
    Status,
    check_descriptors,
    check_disk,
    check_home,
    check_jars,
    check_java,
    check_spark_home,
    check_temporary,
    own_address,
)
from stormspark.errors import UnsupportedEnvironmentError
from stormspark.extras import first_missing, missing
from stormspark.launcher import on_databricks
from stormspark.private_files import drivers_log_folder, open_private
from stormspark.rotated_output import RotatedOutput
from stormspark.spark.defaults import spark_defaults
from stormspark.spark.delta_jars import remember_jars
from stormspark.spark.fetching import PACKAGES, Fetching, missing_packages, not_fetched, not_kept
from stormspark.spark.hadoop_folder import BARE_MANAGER, MANAGER
from stormspark.spark.java_errors import in_words
from stormspark.spark.jvm import end_jvms, start_jvm, starts_jvm
from stormspark.spark.versions import HAS_UNIX_SOCKETS, require_spark

__all__ = [
    "check_session",
    "fetched_jars",
    "handler_kept",
    "local_session",
    "require_classic",
    "require_java",
    "require_master",
    "require_spark_home",
    "say_where_the_jvm_logs",
    "without_effect",
]

#: The files with the output of the JVMs that this process has started. The last one is that of the JVM that runs.
_jvm_logs: list[Path] = []

_log = logging.getLogger(__name__)

#: How long a master of a standalone cluster may take to accept a connection.
_MASTER_SECS = 5.0

_MASTER = re.compile(
    r"local|local\[(\d+|\*)(\s*,\s*\d+)?\]|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]|yarn"
)

#: Settings that Spark's JVM writes out when it starts: patterns as files, packages as jars.
_LISTS_OF_FILES = {PACKAGES, "spark.jars", "spark.files", "spark.archives", "spark.submit.pyFiles"}

_UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"
#: The longest path of a Unix socket, less the name that Spark gives it: a UUID, a dot before it and ".sock" after it.
_LONGEST_FOR_SOCKETS = 107 - len("/.12345678-1234-1234-1234-123456789012.sock")

#: Hadoop's own local file system forks a process for each file operation, which takes 100 ms and more per micro-batch. The file
#: system in our jar does not. Spark writes the checkpoint files through our file system, too. Our file system is for local paths
#: only; object stores keep their own file systems (`stormspark.spark.hadoop_folder` replaces files there).
_BARE_FILE_SYSTEM = {
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    MANAGER: BARE_MANAGER,
}


def local_session(
    workers: int,
    conf: Mapping[str, Any] | None = None,
    *,
    master: str | None = None,
    topology: str = "",
) -> SparkSession:
    """Start Spark for a topology of ``workers`` workers, on this host unless ``master`` says otherwise.

    If this process has a session already, the function returns that one.

    ``spark.*`` entries of ``conf`` go to Spark and override stormspark's own, and so do settings of Spark's UI in
    ``spark-defaults.conf``. The output of Spark's JVM goes to ``spark.log`` in the folder of ``stormspark.log.dir``, or in the
    default folder for logs; there, ``topology`` has a folder of its own. The file is rotated like other logs.
    Raises `UnsupportedEnvironmentError`, with a message of one line, if Java is missing or too old, if this process may open too
    few files, if the master does not answer, or if Spark does not start.
    """
    require_java()
    require_spark_home()
    _require(check_descriptors())  # Java itself says that it can't load java.security
    _warn_about_this_host()
    conf = conf or {}
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # There are at least as many threads as workers, so that workers run side by side. The 4 says how often Spark tries a task, as
    # on a cluster.
    master = master or f"local[{max(2, workers)},4]"
    logging = f"-Dlog4j2.configurationFile={_package_file('jars/log4j2.properties').as_uri()}"
    settings = {
        "spark.master": master,
        "spark.app.name": "stormspark",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": logging,
    }
    if HAS_UNIX_SOCKETS and os.name == "posix":
        settings |= unix_sockets(tempfile.gettempdir())
    if master.startswith("local"):
        jar = _package_file("jars/hadoop-bare-naked-local-fs-0.1.0.jar")
        # The jar goes on the class path. To fetch it from `spark.jars`, Spark would already need the file system that it
        # contains.
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.extraClassPath": str(jar),
            **_BARE_FILE_SYSTEM,
        }
        if own_address() is None:
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if master.startswith("local-cluster"):
        settings["spark.executor.extraClassPath"] = settings["spark.driver.extraClassPath"]
        os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    for key in spark_defaults().keys() & {key for key in settings if key.startswith("spark.ui.")}:
        del settings[key]
    settings |= {key: str(value) for key, value in conf.items() if key.startswith("spark.")}
    for side in ("driver", "executor") if master.startswith("local") else ():
        # Keep our jar on the class path, beside the user's own entries.
        path = settings.get(f"spark.{side}.extraClassPath", "")
        if path and str(jar) not in path.split(os.pathsep):
            settings[f"spark.{side}.extraClassPath"] = os.pathsep.join([str(jar), path])
    if (options := settings["spark.driver.extraJavaOptions"]) != logging:
        settings["spark.driver.extraJavaOptions"] = f"{logging} {options}"
    require_master(settings["spark.master"])
    had_context = SparkContext._active_spark_context is not None
    log = _log_file(conf, topology)
    said_before = log.path.stat().st_size if log.path.exists() else 0
    try:
        # Once a session has ended, its JVM serves the next session of this process.
        starts_here = starts_jvm()
        if starts_here:
            _start_jvm(settings, log)
        builder = SparkSession.builder
        for key, value in settings.items():
            # Spark has written the lists of files out, and the jars that it has fetched are among them.
            if not (starts_here and key in _LISTS_OF_FILES):
                builder = builder.config(key, value)
        with handler_kept():
            return builder.getOrCreate()
    except KeyboardInterrupt:
        if not had_context:
            _end_start()
        raise
    except (PySparkException, Py4JError, OSError) as error:
        if isinstance(error, Py4JNetworkError | OSError) and not had_context:
            _end_start()  # the JVM has ended, or answers nobody
        if (packages := settings.get(PACKAGES)) and (why := not_fetched(log.path, said_before)):
            raise UnsupportedEnvironmentError(missing_packages(packages, why, log.path)) from error
        if told := not_kept(log.path, said_before):
            raise UnsupportedEnvironmentError(told) from error
        reason = _said_at_its_end(log.path, said_before) or in_words(error)
        msg = f"Spark did not start with the master {settings['spark.master']!r} ({reason}); read {log.path} for more"
        raise UnsupportedEnvironmentError(msg) from error


def unix_sockets(temporary: str, otherwise: str = "/tmp") -> dict[str, str]:
    """Return the settings with which Spark's JVM and Python talk by Unix sockets, if these can have a name that is short enough.

    On loopback TCP each stage waits about 50 ms, as if for delayed acknowledgements of small packets. Spark puts the sockets into
    the ``temporary`` folder; if its path is too long, ``otherwise`` may do.

    >>> unix_sockets("/data/tmp")
    {'spark.python.unix.domain.socket.enabled': 'true'}
    >>> unix_sockets(70 * "x", ".")["spark.python.unix.domain.socket.dir"], unix_sockets(70 * "x", "/nowhere")
    ('.', {})
    """
    if len(os.fsencode(temporary)) <= _LONGEST_FOR_SOCKETS:
        return {_UNIX_SOCKETS: "true"}
    if os.access(otherwise, os.W_OK | os.X_OK):
        return {_UNIX_SOCKETS: "true", "spark.python.unix.domain.socket.dir": otherwise}
    return {}


def say_where_the_jvm_logs(folder: str) -> None:
    """If Spark's JVM logs in another folder, say so in the ``spark.log`` of this ``folder``, where people look for it.

    A JVM serves all topologies of its process, and its output goes to the folder of the one for which it was started.
    """
    place = Path(folder, "spark.log")
    if not _jvm_logs or _jvm_logs[-1] == place:
        return
    _log.info("Spark's JVM writes its output to %s", _jvm_logs[-1])
    with suppress(OSError, UnsupportedEnvironmentError), open(open_private(place), "a") as file:
        file.write(
            f"Spark's JVM was started before this topology, and writes its output to {_jvm_logs[-1]}\n"
        )


def fetched_jars(conf: Mapping[str, Any]) -> list[str]:
    """Let Spark fetch the packages that ``conf`` names, and return the jars. No session is started.

    Raises `UnsupportedEnvironmentError`.
    """
    require_java()
    require_spark_home()
    settings = {"spark.master": "local[1]"} | {
        key: str(value) for key, value in conf.items() if key.startswith("spark.")
    }
    log = _log_file(conf, "jars")
    said_before = log.path.stat().st_size if log.path.exists() else 0
    output = log.open()
    try:
        gateway = start_jvm(settings, output, Fetching(settings, log.path).look)
    except PySparkException as error:
        if told := not_kept(log.path, said_before):
            raise UnsupportedEnvironmentError(told) from error
        why = not_fetched(log.path, said_before) or _said_at_its_end(log.path, said_before)
        raise UnsupportedEnvironmentError(missing_packages(settings[PACKAGES], why, log.path)) from error
    finally:
        os.close(output)
    jars = str(gateway.jvm.java.lang.System.getProperty("spark.jars") or "")
    gateway.shutdown()
    gateway.proc.stdin.close()  # which ends the JVM
    gateway.proc.wait()
    remember_jars(settings, jars)
    return [jar.removeprefix("file://").removeprefix("file:") for jar in jars.split(",")]


def without_effect(session: SparkSession, conf: Mapping[str, Any]) -> list[str]:
    """Return the settings of Spark in ``conf`` that the session, which was there before, has not."""
    asked = {key: str(value) for key, value in conf.items() if key.startswith("spark.")}
    return sorted(key for key, value in asked.items() if not _has(session.conf.get(key, None), key, value))


def _has(there: str | None, key: str, value: str) -> bool:
    if there is None:
        return False
    if key in _LISTS_OF_FILES or key.endswith(("extraClassPath", "extraJavaOptions")):
        # Spark has written names of files out as addresses, and `local_session` has added entries.
        return all(os.path.basename(one) in there for one in re.split(r"[,:\s]+", value))
    return there.lower() == value.lower()  # Spark has true where Python has True


def check_session(spark: object) -> SparkSession:
    """Return the session if a topology can run on it; otherwise raise `UnsupportedEnvironmentError` with a one-line message."""
    classic = require_classic(spark)
    require_spark(classic.version)
    lacking = first_missing(["pandas"])  # Spark asks for it, also where functions have no use for it
    if lacking is not None:
        raise missing(lacking, "the driver of a topology on Spark")
    if not HAS_UNIX_SOCKETS:
        _log.info("batches would be shorter with Spark 4.1 or later (docs/versions.md)")
    elif os.name == "posix" and classic.sparkContext.getConf().get(_UNIX_SOCKETS) != "true":
        _log.info(
            "batches would be shorter with %s=true in the Spark session (docs/batches.md)", _UNIX_SOCKETS
        )
    return classic


def require_classic(spark: object) -> SparkSession:
    """Return the session if it is a classic one; otherwise raise `UnsupportedEnvironmentError`, as for one of Spark Connect."""
    module = type(spark).__module__
    if module.startswith("pyspark.sql.connect"):
        msg = "a Spark Connect session can't run a topology, because workers connect to the driver: use a classic session"
        if on_databricks():
            msg = (
                "a Spark Connect session can't run a topology, because workers connect to the driver. Serverless compute, and "
                "compute with standard access mode, have no other sessions: use compute with dedicated access mode "
                "(docs/databricks.md)"
            )
        raise UnsupportedEnvironmentError(msg)
    if not isinstance(spark, SparkSession):
        msg = f"expected a SparkSession, got {spark!r:.80} of type {type(spark).__name__}"
        raise UnsupportedEnvironmentError(msg)
    return spark


def require_java() -> None:
    """Raise `UnsupportedEnvironmentError` if Spark will find no Java that can run it. The message says what to install."""
    _require(check_java())


def require_spark_home() -> None:
    """Raise `UnsupportedEnvironmentError` if SPARK_HOME is no Spark, or one of another release than PySpark."""
    _require(check_spark_home(pyspark.__version__))


def _require(result: Result) -> None:
    if result.status is Status.FAILED:
        raise UnsupportedEnvironmentError(str(result))


def _warn_about_this_host() -> None:
    """Log what would make a topology fail later, with errors that do not say why. ``stormspark doctor`` looks at more."""
    for result in (check_home(), check_temporary(), check_disk(), check_jars(delta_package=DELTA_PACKAGE)):
        if result.status is Status.FAILED:
            _log.warning("%s", result)


def require_master(master: str, *, must_answer: bool = True) -> None:
    """Raise `UnsupportedEnvironmentError` if Spark knows no such master, or if no master of a standalone cluster answers that
    ``must_answer``. Spark itself would take much longer to say so.
    """
    if "://" not in master and _MASTER.fullmatch(master) is None:
        kind, bracket, rest = master.partition("[")
        close = difflib.get_close_matches(kind, ("local", "local-cluster", "yarn"), 1)
        meant = f"; did you mean {close[0]}{bracket}{rest}?" if close and close[0] != kind else ""
        msg = f"Spark has no master {master!r}: it is local[N], local-cluster[...], yarn, spark://HOST:PORT or k8s://...{meant}"
        raise UnsupportedEnvironmentError(msg)
    if not master.startswith("spark://") or not must_answer:
        return
    problems = []
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_MASTER_SECS).close()
        except (OSError, ValueError, OverflowError) as error:
            problems.append(f"{place}: {error}")
        else:
            return
    msg = f"no Spark master answers at {master} ({'; '.join(problems)}); start it, or name another one by --master"
    raise UnsupportedEnvironmentError(msg)


def _start_jvm(settings: Mapping[str, str], log: RotatedOutput) -> None:
    """Start Spark's JVM. Its output goes to a file, because some output comes before logging is set up."""
    output = log.open()
    fetching = Fetching(settings, log.path) if settings.get(PACKAGES) else None
    try:
        gateway = start_jvm(settings, output, None if fetching is None else fetching.look)
    finally:
        os.close(output)
    log.watch(lambda: gateway.proc.poll() is None)
    _jvm_logs.append(log.path)
    if fetching is not None:
        remember_jars(settings, gateway.jvm.java.lang.System.getProperty("spark.jars") or "")
    SparkContext._ensure_initialized(
        gateway=gateway, conf=SparkConf(loadDefaults=False).setAll(list(settings.items()))
    )


def _end_start() -> None:
    """End what a start has begun that was interrupted, or that has lost its JVM, so that the next start works.

    If the interrupt comes while the JVM makes its context, PySpark does not get hold of that context, and the JVM can't make
    another one. So the JVM ends, too, if this process has started it.
    """
    if (context := SparkContext._active_spark_context) is not None:
        with suppress(Exception):
            context.stop()
    gateway = SparkContext._gateway
    if gateway is None or not end_jvms():
        return
    SparkContext._gateway = SparkContext._jvm = None
    with suppress(Exception):
        gateway.shutdown_callback_server()


@atexit.register
def _remove_socket() -> None:
    """Remove the socket of PySpark's accumulators, which stays in the temporary folder unless the session is stopped."""
    server = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
    path = getattr(server, "server_address", None)
    if isinstance(path, str):
        with suppress(OSError):
            os.unlink(path)


@contextmanager
def handler_kept() -> Iterator[None]:
    """Keep the handler of SIGINT, if this program has one of its own. PySpark's own handler makes the running jobs fail."""
    before = signal.getsignal(signal.SIGINT)
    yield
    own = callable(before) and before is not signal.default_int_handler
    if own and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


def _said_at_its_end(log: Path, since: int) -> str:
    """Return the exception or the error of ``spark-submit`` that ended the JVM, if its output after the position ``since`` names
    one; else an empty string.
    """
    said = log.read_bytes()[since:].decode(errors="replace")
    if "Error: Missing application resource" in said and "PYSPARK_SUBMIT_ARGS" in os.environ:
        return "PYSPARK_SUBMIT_ARGS must end with pyspark-shell"
    ends = re.findall(r'^(?:Exception in thread "main"|Error:) (.+)$', said, re.MULTILINE)
    # Spark's UI ends the JVM if all its ports are taken, and says no more than this.
    ends += re.findall(r"^java\.net\.BindException: (.+: Service '.+' failed after .+)$", said, re.MULTILINE)
    if ends and ": " not in ends[-1]:
        # Such as java.lang.ExceptionInInitializerError, which says nothing: the last cause does.
        ends += re.findall(r"^Caused by: (.+)$", said[said.rindex(ends[-1]) :], re.MULTILINE)
    return ends[-1] if ends else ""


def _log_file(conf: Mapping[str, Any], topology: str) -> RotatedOutput:
    path = drivers_log_folder(conf.get("stormspark.log.dir"), topology) / "spark.log"
    sizes = ("stormspark.log.max.bytes", "stormspark.log.backup.count")
    settings = Settings.read({key: conf[key] for key in sizes if key in conf})
    return RotatedOutput(path, settings.log_max_bytes, settings.log_backup_count)


def _package_file(name: str) -> Path:
    """Return the path of a file of this package. It is a real file, so the JVM can open it."""
    file = resources.files("stormspark.spark").joinpath(name)
    if not isinstance(file, Path):
        msg = f"stormspark is imported from an archive, in which Java can't read {name}: install stormspark to start Spark"
        raise UnsupportedEnvironmentError(msg)
    return file
