"""One Spark for all tests that need one: to start it takes longer than most of them."""

from __future__ import annotations

import gc
import os
import random
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests import quick_jvm
from tests.failure_reports import NamedAtOnce, pytest_runtest_makereport  # noqa: F401 - a hook
from tests.waiting import STARTED_BY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stormspark.spark import SparkTopology
    from tests.kafka_broker import KafkaBroker


# No deadlines: the machines are shared. What `make test` draws is the same each time, so that what it says of a change is not
# luck; `make soak` looks at two hundred times as many examples, and at others each time.
settings.register_profile("tests", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("soak", deadline=None, max_examples=5000, print_blob=True)
# `make test-fast` looks at fewer, because it is for whoever waits for it.
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=8)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "tests"))
# Of all drivers that tests start.
os.environ.setdefault("SPARK_SUBMIT_OPTS", quick_jvm.options(quick_jvm.PLAIN))


def pytest_configure(config: pytest.Config) -> None:
    """A temporary folder of its own for each process that runs tests, as topologies are known by their names there."""
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())  # `tmp_path` is where it always was
    folder = tempfile.mkdtemp(prefix="tests-")
    os.chmod(folder, 0o711)  # some tests have processes of other users
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    os.environ[STARTED_BY] = folder
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Failures are named where somebody sees them, which is not in the processes of pytest-xdist."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        session.config.pluginmanager.register(NamedAtOnce(terminal))


@pytest.fixture
def hangs_up() -> Iterator[None]:
    """SIGHUP has its effect, also if somebody has started the tests with ``nohup``, which lets all processes ignore it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The thousands of tests live as long as the run. To look through them for garbage, again and again, would cost half of the
    time that it takes to collect them, and a tenth of the time of `make test-fast`.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000, 20, 20)  # a test makes many objects, and few cycles
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Long tests run where they are asked for. What a test draws of Python's randomness is its own, whatever ran before it."""
    if item.get_closest_marker("long") is not None and "LONG_TESTS" not in os.environ:
        pytest.skip("`make soak` has the time (LONG_TESTS)")
    random.seed(f"{os.environ.get('TEST_SEED', '1')} {item.nodeid}")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session with three threads, as ``stormspark run`` makes it; workers find the modules of the
    tests.
    """
    from stormspark.spark import local_session
    from tests.spark_jars import connector_conf

    root = str(Path(__file__).parent.parent)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    logs = {"stormspark.log.dir": str(tmp_path_factory.mktemp("spark-logs"))}
    plain = "WITHOUT_CONNECTORS" in os.environ  # `tools.matrix --ci`, which fetches no jars
    session = local_session(3, ({} if plain else connector_conf()) | logs)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """One broker for all tests: each makes topics of its own, and one that kills it starts it again."""
    from tests.kafka_broker import KafkaBroker

    with KafkaBroker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture
def start(spark: SparkSession) -> Iterator[Callable[..., SparkTopology]]:
    """`stormspark.spark.submit` in that session; what a test leaves running is killed, so that it disturbs no
    other.

    A topology has one worker unless it sets ``topology.workers``, or the test does. None lets the session's cores decide.
    """
    from stormspark.api import Topology
    from stormspark.config import merged
    from stormspark.spark import submit

    started: list[SparkTopology] = []

    def start_topology(topology: object, **options: object) -> SparkTopology:
        if isinstance(topology, Topology):
            options["conf"] = merged({"topology.workers": 1}, topology.conf, options.get("conf") or {})  # type: ignore[arg-type]
        started.append(submit(topology, spark, **options))  # type: ignore[arg-type]
        return started[-1]

    yield start_topology
    for running in started:
        if not running.wait(0):
            running.kill()
