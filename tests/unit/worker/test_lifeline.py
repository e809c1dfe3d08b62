"""Which process is meant, and whether it lives."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
import types
from multiprocessing import Pipe
from typing import Any

import pytest

from stormspark.worker.host import lifeline
from stormspark.worker.host.launch import end_process
from stormspark.worker.host.lifeline import Lifeline, executor_jvm, is_alive, this_process
from stormspark.worker.host.messages import Beat, Orders, ProcessId

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs Linux's /proc")


@pytest.fixture
def other():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with open(f"/proc/{process.pid}/stat") as file:
        started = int(file.read().rpartition(")")[2].split()[19])
    yield ProcessId("host", process.pid, started)
    process.kill()
    process.communicate()


def test_this_process_lives_and_works_for_no_jvm():
    assert is_alive(this_process())
    assert executor_jvm() is None


def test_a_process_is_not_mistaken_for_a_later_one_with_its_pid(other):
    assert is_alive(other)
    later = other._replace(started=other.started - 1)
    assert not is_alive(later)
    end_process(later)
    assert is_alive(other)
    end_process(other)
    deadline = time.monotonic() + 120
    while is_alive(other):  # until the kernel has made a zombie of it
        assert time.monotonic() < deadline


class _Ended(BaseException):
    pass


def watch(jvm, lease=60.0):
    """A lifeline in a thread: its link's far end, what it obeyed, and why it ended (once that is set)."""
    near, far = Pipe()
    obeyed, reasons, ended = [], [], threading.Event()

    def end(reason):
        reasons.append(reason)
        raise _Ended

    def run():
        try:
            Lifeline(near, jvm, lease, obeyed.append, end).watch()  # type: ignore[arg-type]
        except _Ended:
            near.close()
            ended.set()

    threading.Thread(target=run, daemon=True).start()
    return far, obeyed, reasons, ended


def test_it_ends_with_the_jvm(other):
    far, _, reasons, ended = watch(other)
    end_process(other)
    assert ended.wait(120)
    assert reasons == ["the Spark executor's JVM is gone"]
    far.close()


def test_it_ends_where_the_jvm_is_gone_already(other):
    far, _, _, ended = watch(other._replace(started=1))
    assert ended.wait(120)
    far.close()


def test_it_ends_with_its_link():
    far, _, reasons, ended = watch(None)
    far.close()
    assert ended.wait(120)
    assert reasons == ["the link to the driver is cut"]


@pytest.mark.slow
def test_it_ends_when_nothing_is_heard_for_the_lease():
    far, _, reasons, ended = watch(None, lease=0.3)
    assert ended.wait(120)
    assert reasons == ["nothing was heard from the driver for 0.3 s"]
    far.close()


@pytest.mark.slow
def test_a_host_that_froze_is_not_the_drivers_silence(monkeypatch):
    """Its clock jumps by minutes between two beats, both of which are answered."""
    more = [0.0]
    monkeypatch.setattr(lifeline, "time", types.SimpleNamespace(monotonic=lambda: time.monotonic() + more[0]))
    far, _, _, ended = watch(None, lease=60.0)
    for _ in range(5):
        more[0] += 300.0
        assert far.poll(10)
        assert far.recv() == Beat()
        far.send(Orders())
    assert not ended.is_set()
    far.close()
    assert ended.wait(10)


@pytest.mark.slow
def test_what_it_watches_is_looked_at_often():
    """Also where beats are rare."""
    looks = threading.Semaphore(0)
    near: Any
    near, far = Pipe()

    def end(reason):
        raise _Ended

    def run():
        with contextlib.suppress(_Ended):
            Lifeline(near, None, 600.0, lambda orders: None, end, look=looks.release).watch()

    threading.Thread(target=run, daemon=True).start()
    assert all(looks.acquire(timeout=30) for _ in range(3))
    far.close()


@pytest.mark.slow
def test_it_beats_more_often_while_the_topology_stops(monkeypatch):
    """B1, J2: a second Ctrl-C names the calls of the last beat."""
    monkeypatch.setattr(lifeline, "_STOPPING_BEAT_SECS", 0.0)
    far, _, _, ended = watch(None, lease=36000.0)
    for orders in Orders(stops=True), Orders(close=True):
        far.send(orders)
        assert far.recv() == Beat()
    far.close()
    assert ended.wait(120)


@pytest.mark.slow
def test_it_beats_and_obeys():
    far, obeyed, _, ended = watch(None, lease=0.3)
    for _ in range(10):
        assert far.poll(10)
        assert far.recv() == Beat()
        far.send(Orders(active=False))
    assert not ended.is_set(), "it is answered, so it lives on"
    far.close()
    assert ended.wait(120)
    assert set(obeyed) == {Orders(active=False)}
