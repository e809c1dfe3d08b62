"""B1: calls of user code that do not return on the local engine, while a topology runs and when it stops."""

import asyncio
import contextlib
import threading
import time

import pytest

from stormspark import AsyncBolt, BasicBolt, Fields, TopologyBuilder
from stormspark.local import LocalCluster
from stormspark.local import topology as local
from stormspark.testing import FixedTupleSpout
from stormspark.worker.asynchronous import event_loop
from stormspark.worker.asynchronous.event_loop import EventLoop
from stormspark.worker.executors import executors

begun, go, cleaned = threading.Event(), threading.Event(), []


@pytest.fixture(autouse=True)
def events():
    begun.clear()
    go.clear()
    cleaned.clear()
    yield
    go.set()


def block():
    begun.set()
    go.wait()


LINE = f"{__file__}:{block.__code__.co_firstlineno + 2}"


def line_of(function, number):
    return f"{__file__}:{function.__code__.co_firstlineno + number}"


def line_of_call(call):
    return call.partition("(")[2].removesuffix(")")


class Quiet(BasicBolt):
    def execute(self, tup, collector):
        pass

    def declare_output_fields(self, declarer):
        pass


class Blocks(Quiet):
    waits = True

    def execute(self, tup, collector):
        block()


class BlocksWorker(Blocks):
    waits = False


class BlocksAtStart(Quiet):
    waits = True

    def prepare(self, conf, context):
        block()


class BlocksAtEnd(Quiet):
    waits = True

    def cleanup(self):
        block()


class BlocksWorkerAtEnd(BlocksAtEnd):
    waits = False


class Cleans(Quiet):
    waits = False

    def cleanup(self):
        cleaned.append(True)


class BlocksLoop(AsyncBolt):
    async def execute(self, tup):
        block()

    def declare_output_fields(self, declarer):
        pass


class Awaits(BlocksLoop):
    async def execute(self, tup):
        begun.set()
        await asyncio.Event().wait()


class AwaitsAMoment(BlocksLoop):
    async def execute(self, tup):
        begun.set()
        await asyncio.sleep(0.1)


class AwaitsInOrder(Awaits):
    ordered, capacity = True, 4


class IgnoresCancellation(Awaits):
    async def execute(self, tup):
        begun.set()
        while not go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(1)


class BlocksLoopAtEnd(BlocksLoop):
    async def execute(self, tup):
        pass

    async def cleanup(self):
        begun.set()
        await asyncio.Event().wait()


def topology(**bolts):
    builder = TopologyBuilder()
    builder.set_spout("numbers", FixedTupleSpout([(1,)], Fields("n")))
    for name, bolt in bolts.items():
        builder.set_bolt(name, bolt).shuffle_grouping("numbers")
    return builder.create_topology("blocks")


def submit(cluster, **bolts):
    return cluster.submit_topology("blocks", {"stormspark.stuck.warning.secs": 0.2}, topology(**bolts))


def warned_of(caplog, text):
    deadline = time.monotonic() + 60
    while not any(text in record.getMessage() for record in caplog.records):
        assert time.monotonic() < deadline, caplog.text
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("bolt", "text"),
    [
        (Blocks(), f"execute of b[0] ({LINE}) has not returned for "),
        (BlocksWorker(), f"worker 0 has been in execute of b[0] ({LINE}) for "),
    ],
    ids=["on its thread", "on the worker's thread"],
)
def test_a_call_that_does_not_return_is_named_while_the_topology_runs(bolt, text, caplog):
    with LocalCluster() as cluster:
        running = submit(cluster, b=bolt)
        warned_of(caplog, text)
        assert [(busy.task, busy.place.line) for busy in running.calls_under_way() if busy.place] == [
            ("b[0]", LINE)
        ]
        go.set()


def test_a_start_that_does_not_return_is_named(caplog):
    with LocalCluster() as cluster:

        def release():
            # An earlier look may come before the call of ``prepare``.
            warned_of(
                caplog,
                f"worker 0 is not ready yet, and the topology waits for it: it has been in prepare of b[0] ({LINE})",
            )
            go.set()

        threading.Thread(target=release).start()
        submit(cluster, b=BlocksAtStart())


@pytest.mark.slow
def test_a_blocked_event_loop_is_named_while_it_is_blocked(caplog, monkeypatch):
    monkeypatch.setattr(event_loop, "_LATE_SECS", 0.1)
    with LocalCluster() as cluster:
        running = submit(cluster, b=BlocksLoop())
        warned_of(caplog, f"execute of b[0] ({LINE}) has blocked the event loop of worker 0")
        deadline = time.monotonic() + 60
        while (blocked := running.statistics().components["b"].blocked_loop) is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert blocked.code == f"execute of b[0] ({LINE})"
        go.set()


def looks_until_blocked(loop):
    deadline = time.monotonic() + 60
    while (blocked := loop.blocked()) is None:
        assert time.monotonic() < deadline
        loop.look()
        time.sleep(0.01)
    return blocked


def test_short_calls_that_block_the_loop_again_and_again_are_found(monkeypatch):
    """No coroutine waits long for its turn, but the loop does nothing else."""
    monkeypatch.setattr(event_loop, "_SAME_LINE_SECS", 0.1)
    loop = EventLoop("loop")

    async def sleeps():
        while not go.is_set():
            time.sleep(0.05)
            await asyncio.sleep(0)

    loop.tasks.add("b[0]")
    loop.call(lambda: loop.begin(sleeps(), "b[0]"))
    blocked = looks_until_blocked(loop)
    assert (blocked.task, blocked.on_loop, blocked.alone) == ("b[0]", True, True)
    assert blocked.place == ("sleeps", f"{__file__}:{sleeps.__code__.co_firstlineno + 2}")
    loop.end()


@pytest.mark.slow
def test_a_loop_that_waits_or_works_a_little_is_not_blocked(monkeypatch):
    monkeypatch.setattr(event_loop, "_SAME_LINE_SECS", 0.1)
    monkeypatch.setattr(event_loop, "_LATE_SECS", 30.0)
    loop = EventLoop("loop")

    async def waits():
        while True:
            await asyncio.sleep(0.001)

    loop.call(lambda: loop.begin(waits(), "b[0]"))
    for _ in range(50):
        loop.look()
        assert loop.blocked() is None
        time.sleep(0.01)
    loop.end()


def test_a_loop_that_is_late_for_another_reason_is_not_blocked():
    """On a busy machine the loop's thread may wait for a processor."""
    loop = EventLoop("loop")
    loop._asked_at = time.monotonic() - 60
    loop.look()
    assert loop.blocked() is None
    loop.end()


@pytest.fixture
def short(monkeypatch):
    """A stop waits a moment for last calls."""
    monkeypatch.setattr(local, "STOP_SECS", 0.2)
    monkeypatch.setattr(local, "_MARGIN_SECS", 0.0)


def test_a_stop_gives_up_a_last_call_on_the_workers_thread(short, caplog):
    """C1: also a bolt that says that it does not wait."""
    with LocalCluster() as cluster:
        running = submit(cluster, a=BlocksWorkerAtEnd(), b=Cleans())
        running.run_until_idle()
        running.stop()
        assert begun.is_set() and running.wait(0)
        warned_of(
            caplog, f"cleanup of a[0] ({LINE}) has not returned for 0 s, and topology blocks stops without it"
        )
        go.set()
        running._thread.join(60)
    assert cleaned == [], "the tasks behind it get no last calls, not even late ones"


def test_a_stop_gives_up_a_call_on_the_workers_thread_that_holds_up_the_last_batch(
    short, monkeypatch, caplog
):
    """B1, J2: nobody has to press Ctrl-C twice."""
    monkeypatch.setattr(local, "LAST_BATCH_SECS", 0.3)
    with LocalCluster() as cluster:
        running = submit(cluster, a=BlocksWorker(), b=Cleans())
        assert begun.wait(60)
        running.stop()
        assert running.wait(0)
        assert f"execute of a[0] ({LINE}) has not returned for" in caplog.text
        assert "topology blocks stops without it" in caplog.text
        go.set()
        running._thread.join(60)
    assert cleaned == []


@pytest.mark.parametrize(
    ("bolt", "call"),
    [
        (Blocks(), f"execute of b[0] ({LINE})"),
        (Awaits(), f"execute of b[0] ({line_of(Awaits.execute, 2)})"),
        (AwaitsInOrder(), f"execute of b[0] ({line_of(Awaits.execute, 2)})"),
        (IgnoresCancellation(), f"execute of b[0] ({line_of(IgnoresCancellation.execute, 4)})"),
        (BlocksLoop(), f"execute of b[0] ({LINE})"),
        (BlocksAtEnd(), f"cleanup of b[0] ({LINE})"),
        (BlocksWorkerAtEnd(), f"cleanup of b[0] ({LINE})"),
        (
            BlocksLoopAtEnd(),
            f"cleanup of b[0] ({line_of(BlocksLoopAtEnd.cleanup, 2)})",
        ),
    ],
    ids=[
        "execute on its thread",
        "coroutine",
        "coroutine in order",
        "coroutine that is not cancelled",
        "coroutine that blocks the loop",
        "cleanup on its thread",
        "cleanup on the worker's thread",
        "cleanup of a coroutine",
    ],
)
def test_the_statistics_name_a_call_that_had_not_returned_at_the_end(bolt, call, short, monkeypatch, caplog):
    """B1, C1: the task got no cleanup, or only a part of it, or its call was cancelled. A warning names the call, too."""
    monkeypatch.setattr(executors, "STOP_SECS", 0.2)
    monkeypatch.setattr("stormspark.worker.asynchronous.life.STOP_SECS", 0.2)
    monkeypatch.setattr("stormspark.worker.asynchronous.bolt_executor.END_SECS", 0.1)
    with LocalCluster() as cluster:
        running = submit(cluster, b=bolt)
        if "execute" in call:
            assert begun.wait(60)
        else:
            running.run_until_idle()
        running.stop()
        (left,) = running.statistics().components["b"].not_returned
        assert (left.task, left.code) == ("b[0]", call)
        assert line_of_call(call) in caplog.text
        go.set()


@pytest.mark.slow
def test_a_call_that_has_blocked_the_loop_is_named_as_one_that_had_not_returned_too(short, monkeypatch):
    """B1: the coroutines of other tasks only wait for the loop."""
    monkeypatch.setattr(event_loop, "_LATE_SECS", 0.1)
    monkeypatch.setattr(executors, "STOP_SECS", 0.2)
    monkeypatch.setattr("stormspark.worker.asynchronous.life.STOP_SECS", 0.2)
    with LocalCluster() as cluster:
        running = submit(cluster, a=Awaits(), b=BlocksLoop())
        deadline = time.monotonic() + 60
        while running.statistics().components["b"].blocked_loop is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        running.stop()
        counts = running.statistics().components
        assert [call.code for call in counts["b"].not_returned] == [f"execute of b[0] ({LINE})"]
        assert counts["b"].blocked_loop.code == f"execute of b[0] ({LINE})"
        go.set()


def test_a_stop_that_need_not_wait_names_no_call():
    """B1: the call returns in time, and its ack counts."""
    with LocalCluster() as cluster:
        running = submit(cluster, b=AwaitsAMoment())
        assert begun.wait(60)
        running.stop()
        counts = running.statistics().components["b"]
        assert (counts.not_returned, counts.acked) == ((), 1)


def test_a_cleanup_that_waits_on_the_event_loop_is_named_with_its_line(monkeypatch):
    """A second Ctrl-C names the calls that it cuts off, and the worker's thread waits for this one."""
    monkeypatch.setattr("stormspark.worker.asynchronous.life.STOP_SECS", 300.0)
    with LocalCluster() as cluster:
        running = submit(cluster, b=BlocksLoopAtEnd())
        running.run_until_idle()
        stopping = threading.Thread(target=running.stop)
        stopping.start()
        deadline = time.monotonic() + 60
        while not (named := [busy.code for busy in running.calls_under_way() if busy.place]):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        running.kill()
        stopping.join(60)
    line = BlocksLoopAtEnd.cleanup.__code__.co_firstlineno + 2
    assert named == [f"cleanup of b[0] ({__file__}:{line})"]


def test_a_topology_that_does_not_become_idle_names_the_call_that_it_is_in():
    with LocalCluster() as cluster:
        running = submit(cluster, b=BlocksWorker())
        assert begun.wait(60)
        with pytest.raises(TimeoutError, match="was not idle after") as raised:
            running.run_until_idle(timeout=0.05)
        assert f"it has been in execute of b[0] ({LINE}) for " in str(raised.value)
        go.set()


@pytest.mark.parametrize("bolt", [BlocksAtEnd(), BlocksLoopAtEnd()], ids=["thread", "coroutine"])
def test_a_kill_ends_a_stop_that_waits_for_last_calls(bolt, monkeypatch):
    monkeypatch.setattr(executors, "STOP_SECS", 300.0)
    monkeypatch.setattr("stormspark.worker.asynchronous.life.STOP_SECS", 300.0)
    with LocalCluster() as cluster:
        running = submit(cluster, b=bolt)
        running.run_until_idle()
        stopping = threading.Thread(target=running.stop)
        stopping.start()
        assert begun.wait(60)
        running.kill()
        assert running.wait(60)
        stopping.join(60)
        assert not stopping.is_alive()
