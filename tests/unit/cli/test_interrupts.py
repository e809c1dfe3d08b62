"""``stormspark run`` in a process of its own, which somebody ends with Ctrl-C, or whose terminal closes."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stormspark.ui.watch import ONE_SECS
from tests.waiting import PATIENCE_SECS, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("hangs_up")]

TOPOLOGY = """
    import threading
    from concurrent.futures import ThreadPoolExecutor

    from stormspark import BasicBolt, Fields, TopologyBuilder
    from stormspark.testing import FixedTupleSpout

    def block():
        print("it waits", flush=True)
        threading.Event().wait()

    class Blocks(BasicBolt):
        waits = {waits}

        def prepare(self, conf, context):
            # Python would wait for this thread when it ends.
            ThreadPoolExecutor(1).submit(threading.Event().wait)

        def execute(self, tup, collector):
            {execute}

        def cleanup(self):
            block()

        def declare_output_fields(self, declarer):
            pass

    def build():
        builder = TopologyBuilder()
        builder.set_spout("numbers", FixedTupleSpout([(1,)], Fields("n")))
        builder.set_bolt("blocks", Blocks()).shuffle_grouping("numbers")
        return builder.create_topology("blocks")
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[object]:
    started: list[subprocess.Popen[str]] = []

    def run(target: str) -> subprocess.Popen[str]:
        command = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]
        command += [sys.executable, "-m", "stormspark.cli", "run", target, "--engine", "local"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def until(process: subprocess.Popen[str], *texts: str) -> None:
    """Read the output until each of these texts has come."""
    assert process.stdout is not None
    missing = set(texts)
    while missing:
        line = process.stdout.readline()
        assert line, f"{missing} did not come"
        missing = {text for text in missing if text not in line}


@pytest.mark.parametrize("waits", [True, False], ids=["on its thread", "on the worker's thread"])
@pytest.mark.parametrize("where", ["execute", "cleanup"])
def test_a_second_ctrl_c_ends_the_process_at_once_and_names_what_it_cuts_off(run, tmp_path, waits, where):
    execute = "block()" if where == "execute" else "print('executes', flush=True)"
    file = tmp_path / "blocking_topology.py"
    file.write_text(textwrap.dedent(TOPOLOGY).format(waits=waits, execute=execute))
    process = run(str(file))
    until(process, "tuples/s", "it waits" if where == "execute" else "executes")
    process.send_signal(signal.SIGINT)
    until(
        process,
        "stopping; what is under way gets 10 s (a call on a worker's thread 60 s), and then close and cleanup get 10 s",
    )
    # Two signals within this time count as one, and a busy machine delivers the first one late.
    heard = time.monotonic()
    if where == "cleanup":
        until(process, "it waits")
    wait_for(lambda: time.monotonic() - heard > ONE_SECS)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE_SECS)
    assert process.returncode == 130
    assert f"this cuts off {where} of blocks[0] (" in output
    assert "blocks on local: " in output, "the figures are printed"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_an_interrupt_before_the_topology_runs_ends_the_program(run, tmp_path, number, code):
    """The program also hears a SIGINT that was ignored when it started, as in the background of a script."""
    file = tmp_path / "slow_to_load.py"
    file.write_text("import threading\nprint('it loads', flush=True)\nthreading.Event().wait()\n")
    process = run(str(file))
    until(process, "it loads")
    process.send_signal(number)
    output, _ = process.communicate(timeout=PATIENCE_SECS)
    assert process.returncode == code
    assert output == f"interrupted by {signal.Signals(number).name} before the topology ran\n"


PRINTS = """
    from pathlib import Path

    from stormspark import BasicBolt, Fields, Spout, TopologyBuilder

    class Numbers(Spout):
        def open(self, conf, context, collector):
            self.collector = collector

        def next_tuple(self):
            self.collector.emit((1,), message_id=1)

        def declare_output_fields(self, declarer):
            declarer.declare(Fields("n"))

    class Prints(BasicBolt):
        def execute(self, tup, collector):
            print("it prints", flush=True)

        def cleanup(self):
            Path({file!r}).write_text("closed")

        def declare_output_fields(self, declarer):
            pass

    def build():
        builder = TopologyBuilder()
        builder.set_spout("numbers", Numbers())
        builder.set_bolt("prints", Prints()).shuffle_grouping("numbers")
        return builder.create_topology("prints")
"""


@pytest.fixture
def printing(tmp_path: Path) -> list[str]:
    """The command that runs a topology which prints for ever, until a signal stops it."""
    file = tmp_path / "printing.py"
    file.write_text(textwrap.dedent(PRINTS).format(file=str(tmp_path / "closed")))
    return [sys.executable, "-m", "stormspark.cli", "run", str(file), "--engine", "local"]


def ended(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(PATIENCE_SECS)
    finally:
        process.kill()


def test_a_terminal_that_closes_stops_the_topology_in_good_order(tmp_path, printing):
    """Nobody can read what is written from then on, and each write to the terminal fails."""
    master, slave = os.openpty()
    process = subprocess.Popen(["setsid", "--ctty", *printing], stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    shown = b""
    while b"it prints" not in shown:
        shown += os.read(master, 65536)
    os.close(master)
    assert ended(process) == 0
    assert (tmp_path / "closed").exists()


def test_a_pipe_that_nobody_reads_any_longer_is_no_end(tmp_path, printing):
    """As with ``| head``, or ``| tee`` that was killed: the topology goes on, and ends when somebody ends it."""
    process = subprocess.Popen(
        [*printing, "--seconds", "1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert ended(process) == 0
    assert (tmp_path / "closed").exists()


@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2)])
def test_a_program_without_standard_streams_runs_a_topology(tmp_path, printing, closed):
    """As with ``>&-``. What tasks print is lost, and no error of theirs."""
    shell = f'exec "$@" {" ".join(f"{number}>&-" for number in closed)}'
    process = subprocess.Popen(
        ["sh", "-c", shell, "sh", *printing, "--seconds", "1"], stderr=subprocess.DEVNULL
    )
    assert ended(process) == 0
    assert (tmp_path / "closed").exists()
