"""Starts the JVM of Spark's driver, and ends it if its start is interrupted.

PySpark starts the JVM, too. Three things are different here:

- The JVM gets a session of its own. If somebody signals the process group of this program, as Ctrl-C in a shell, ``timeout`` and
  other supervisors do, the JVM does not get the signal. So the topology can still work off what is under way.
- Java's temporary folder is Python's. Java knows no TMPDIR, and fails if ``/tmp`` is full or can't be written to.
- An interrupted start leaves nothing behind. If PySpark is interrupted while it waits for the JVM, it removes the folder in which
  the JVM reports its port. The JVM's main thread then dies, and another thread keeps the JVM alive for ever.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

__all__ = [
    "end_jvms",
    "end_warnings",
    "log_no_interrupts",
    "spark_home",
    "start_jvm",
    "starts_jvm",
    "with_temporary_folder",
]

_LOOK_SECS = 0.05
#: A JVM that is told to end may take so long to remove its temporary folders.
_END_SECS = 10.0
#: Java's temporary folder, whatever the environment says.
_JAVAS_OWN = "/tmp"

#: What Py4J logs if it is interrupted, by its logger: at the interrupt, and when it tells the JVM, which may have ended.
_INTERRUPTED = {
    "root": "KeyboardInterrupt while sending command.",
    "py4j.clientserver": "Exception occurred while shutting down connection",
}

_started: list[_Launch] = []


def start_jvm(settings: Mapping[str, str], output: int, look: Callable[[], None] | None = None) -> Any:
    """Start a JVM with these settings of Spark, and return Py4J's gateway to it. The descriptor ``output`` gets its output.

    While the JVM starts, ``look`` is called at intervals. It may raise an error, which ends the JVM. Raises
    `PySparkRuntimeError` if the JVM ends before it reports its port.
    """
    folder = tempfile.mkdtemp(prefix="stormspark-jvm-")
    launch = _Launch(settings, output, Path(folder) / "port")
    _started.append(launch)
    log_no_interrupts()
    try:
        launch.start()
        launch.join()
        port, secret = launch.wait_for_port(look)
        gateway = _connected(port, secret)
    except BaseException:
        launch.end()
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    gateway.proc = launch.process
    return gateway


def log_no_interrupts() -> None:
    """Drop the tracebacks that Py4J logs if a signal interrupts it, because it raises the interrupt as well."""
    for name in _INTERRUPTED:
        logging.getLogger(name).addFilter(_is_news)  # which sees nothing of other loggers


def _is_news(record: logging.LogRecord) -> bool:
    return record.msg != _INTERRUPTED.get(record.name)


def end_warnings() -> None:
    """Let Spark's JVM log nothing more, if it was told to log warnings only. When it ends, it complains by the hundred lines of
    executors that it ends itself.
    """
    context = SparkContext._active_spark_context
    with contextlib.suppress(PySparkException, Py4JError, OSError):  # the JVM may be dead
        if context is not None and context.getConf().get("spark.log.level") == "WARN":
            context.setLogLevel("OFF")


def spark_home() -> str:
    """Return the folder of the Spark that this process would start: that of SPARK_HOME, or else PySpark's own."""
    return str(_find_spark_home())


def starts_jvm() -> bool:
    """Whether the next session of this process starts a JVM. Only then can jars be brought."""
    return SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ


def end_jvms() -> bool:
    """End the JVMs that this process has started, with all processes in their sessions. Return whether there were any."""
    ended = list(_started)
    _started.clear()
    for launch in ended:
        launch.end()
    return bool(ended)


def with_temporary_folder(environment: Mapping[str, str], folder: str | None = None) -> dict[str, str]:
    """Return the environment in which Java has the temporary ``folder``, which is Python's by default.

    What users say of it themselves, in these options or in Spark's settings, counts more.

    >>> with_temporary_folder({}, "/data/my tmp")
    {'JDK_JAVA_OPTIONS': '-Djava.io.tmpdir="/data/my tmp"'}
    >>> with_temporary_folder({}, "/tmp"), with_temporary_folder({"JDK_JAVA_OPTIONS": "-Djava.io.tmpdir=/a"}, "/data")
    ({}, {'JDK_JAVA_OPTIONS': '-Djava.io.tmpdir=/a'})
    >>> with_temporary_folder({"JAVA_TOOL_OPTIONS": "-Djava.io.tmpdir=/a"}, "/data")
    {'JAVA_TOOL_OPTIONS': '-Djava.io.tmpdir=/a'}
    >>> print(with_temporary_folder({}, "/home/o'brien/tmp")["JDK_JAVA_OPTIONS"])
    -Djava.io.tmpdir="/home/o'brien/tmp"
    """
    wanted, options = folder or tempfile.gettempdir(), environment.get("JDK_JAVA_OPTIONS", "")
    is_said = "-Djava.io.tmpdir=" in options + environment.get("JAVA_TOOL_OPTIONS", "")
    if is_said or os.path.realpath(wanted) == os.path.realpath(_JAVAS_OWN) or {"'", '"'} <= set(wanted):
        return dict(environment)  # no quotes let Java read a path with both kinds of them
    told = f"-Djava.io.tmpdir={wanted}"
    if re.search(r"[\s'\"]", wanted):
        # Java ends an argument at white space, and its start at a quote that is alone.
        mark = "'" if '"' in wanted else '"'
        told = f"-Djava.io.tmpdir={mark}{wanted}{mark}"
    return {**environment, "JDK_JAVA_OPTIONS": f"{options} {told}".strip()}


class _Launch(threading.Thread):
    """Starts the JVM's process in a thread of its own.

    A signal interrupts the main thread only. So no interrupt can come between the start of the process and the moment at which
    this object knows the process.
    """

    def __init__(self, settings: Mapping[str, str], output: int, port_file: Path) -> None:
        super().__init__(name="starts-the-jvm", daemon=True)
        self.process: subprocess.Popen[bytes] | None = None
        self._settings, self._output, self._port_file = settings, output, port_file
        self._error: BaseException | None = None

    def run(self) -> None:
        """Start the process. It ends by itself when its standard input ends, so it does not outlive this process."""
        command = [os.path.join(_find_spark_home(), "bin", "spark-submit")]
        for key, value in self._settings.items():
            command += ["--conf", f"{key}={value}"]
        command += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        environment = with_temporary_folder(os.environ) | {
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._port_file),
        }
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=self._output,
                stderr=self._output,
                env=environment,
                start_new_session=True,
            )
        except BaseException as error:
            self._error = error

    def wait_for_port(self, look: Callable[[], None] | None) -> tuple[int, str]:
        """Wait until the JVM has reported its port and the secret that it expects."""
        if self._error is not None:
            raise self._error
        assert self.process is not None
        while not self._port_file.is_file():
            if look is not None:
                look()
            # The JVM's report may come between the question above and its end.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_LOOK_SECS)
                if not self._port_file.is_file():
                    raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
        with self._port_file.open("rb") as file:
            return int(read_int(file)), str(UTF8Deserializer().loads(file))  # type: ignore[no-untyped-call]

    def end(self) -> None:
        """End the JVM and wait for its end: first in order, so that it removes its folders, and after a while at once."""
        if self.ident is not None:
            self.join()
        process = self.process
        if process is None:
            return
        for number, seconds in ((signal.SIGTERM, _END_SECS), (signal.SIGKILL, None)):
            if process.poll() is not None:
                break
            # The group has more processes: the shell that starts Spark, and the executors of a local cluster.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)


def _connected(port: int, secret: str) -> Any:
    """Let PySpark connect to the JVM, as it does to a JVM that ``spark-submit`` has started."""
    variables = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ |= variables
    try:
        return launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for name in variables:
            os.environ.pop(name, None)
