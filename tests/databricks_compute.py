"""An imitation of Databricks' compute: a JVM with Spark that stays, and notebooks whose Python processes come and go.

As there, ``spark`` is defined before the first cell, ``DATABRICKS_RUNTIME_VERSION`` is set, and the JVM belongs to nobody. A
notebook that restarts its Python process (``dbutils.library.restartPython``) gets a new one, and Spark's JVM stays as it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

__all__ = ["Compute", "Notebook"]

_ROOT = str(Path(__file__).parents[1])
_END = "-- end of the cell --\n"

_JVM = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[3,4]").config("spark.ui.enabled", "false").getOrCreate()
gateway = spark.sparkContext._gateway
print(gateway.java_gateway_server.getListeningPort(), gateway.gateway_parameters.auth_token, flush=True)
sys.stdin.read()
spark.stop()
"""

_NOTEBOOK = """
import builtins, json, os, sys, traceback
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

def attach():
    gateway = launch_gateway()
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
        del os.environ[name]
    jvm = gateway.jvm
    there = jvm.org.apache.spark.SparkContext.getOrCreate()
    context = jvm.JavaSparkContext.fromSparkContext(there)
    return SparkSession(SparkContext(gateway=gateway, jsc=context, conf=SparkConf(_jconf=context.getConf())))

def displayHTML(html):
    print("displayed:", html)

builtins.spark = spark = attach()
for line in sys.stdin:
    try:
        exec(compile(json.loads(line), "cell", "exec"), globals())
    except BaseException:
        traceback.print_exc(file=sys.stdout)
    print(end=os.environ["END"], flush=True)
"""


class Notebook:
    """A notebook. Its Python process runs the cells that it gets."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self._environment, self._log = environment, log
        self._start()

    def _start(self) -> None:
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _NOTEBOOK],
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def begin(self, cell: str) -> None:
        """Start a cell."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(cell) + "\n")
        self._process.stdin.flush()

    def read(self, until: str = _END) -> str:
        """Return what the cell says until it says that, which is by default until its end."""
        assert self._process.stdout is not None
        said: list[str] = []
        for line in self._process.stdout:
            if line == _END and until == _END:
                break
            said.append(line)
            if until in line:
                break
            assert line != _END, f"the cell ended without {until!r}: {''.join(said)}"
        else:
            msg = f"the notebook's process ended: {''.join(said)}{self.log()}"
            raise AssertionError(msg)
        return "".join(said)

    def run(self, cell: str) -> str:
        """Run a cell, and return what it prints."""
        self.begin(cell)
        return self.read()

    def cancel(self) -> str:
        """Cancel the cell that runs, and return what it says after that."""
        self._process.send_signal(signal.SIGINT)
        return self.read()

    def restart_python(self) -> None:
        """End the Python process without a word to it, and start another one."""
        self.end()
        self._start()

    def end(self) -> None:
        """End the Python process, as when the notebook is detached."""
        self._process.kill()
        self._process.communicate()

    def log(self) -> str:
        """Return what the Python processes have logged."""
        return self._log.read_text()


class Compute:
    """The compute, with Spark's JVM."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="compute-"))
        self._notebooks: list[Notebook] = []
        path = os.pathsep.join(filter(None, [_ROOT, os.environ.get("PYTHONPATH")]))
        self._environment = os.environ | {
            "PYTHONPATH": path,
            "PYSPARK_PYTHON": sys.executable,
            "END": _END,
        }
        with (self.folder / "jvm.log").open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _JVM],
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self.folder,
            )
        assert self._process.stdout is not None
        answer = self._process.stdout.readline().split()
        assert len(answer) == 2, (self.folder / "jvm.log").read_text()
        self._port, self._secret = answer

    @contextlib.contextmanager
    def notebook(self, **variables: str) -> Iterator[Notebook]:
        """Attach a notebook, for as long as the block runs."""
        environment = self._environment | {
            "DATABRICKS_RUNTIME_VERSION": "19.0",
            "PYSPARK_GATEWAY_PORT": self._port,
            "PYSPARK_GATEWAY_SECRET": self._secret,
            **variables,
        }
        notebook = Notebook(environment, self.folder / f"notebook-{len(self._notebooks)}.log")
        self._notebooks.append(notebook)
        try:
            yield notebook
        finally:
            notebook.end()

    def end(self) -> None:
        """End the JVM."""
        self._process.communicate("")
