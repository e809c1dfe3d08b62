"""The process ends after its topologies, whatever their calls do (B1, C1)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = """
import asyncio, threading, time
from stormspark import AsyncBolt, BasicBolt, Bolt, Fields, TopologyBuilder
from stormspark.local import submit
from stormspark.testing import FixedTupleSpout
from stormspark.worker.asynchronous import life
from stormspark.worker.executors import executors

life.STOP_SECS = executors.STOP_SECS = 0.5
began = threading.Semaphore(0)

def stay():
    began.release()
    time.sleep(3600)

class OnThread(BasicBolt):
    waits = True
    def execute(self, tup, collector):
        stay()

class InPool(Bolt):
    def prepare(self, conf, context, collector):
        self.context = context
    def execute(self, tup):
        self.context.shared_executor.submit(stay)

class OnLoop(AsyncBolt):
    async def execute(self, tup):
        await asyncio.to_thread(stay)
    async def cleanup(self):
        await asyncio.Event().wait()

def main():
    builder = TopologyBuilder()
    builder.set_spout("s", FixedTupleSpout([(1,)], Fields("n")))
    for name, bolt in (("thread", OnThread()), ("pool", InPool()), ("loop", OnLoop())):
        builder.set_bolt(name, bolt).shuffle_grouping("s")
    running = submit(builder.create_topology("t"))
    for _ in range(3):
        began.acquire()
    running.stop()
    print("stopped")

if __name__ == "__main__":
    import hanging  # so that the components are pickled by name
    hanging.main()
"""


@pytest.mark.slow
def test_calls_that_never_return_keep_no_process_from_ending(tmp_path: Path) -> None:
    """A16, A28: on an executor's thread, in the shared pool, and in a thread of a coroutine."""
    script = tmp_path / "hanging.py"
    script.write_text(_SCRIPT)
    ended = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "stopped\n"
    for task in (
        f"thread[0] gets no close or cleanup: execute of thread[0] ({script}:",
        f"loop[0]: has not returned from its cleanup ({script}:",
    ):
        assert task in ended.stderr
