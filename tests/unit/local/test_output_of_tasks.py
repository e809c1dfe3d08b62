"""Whose file gets what tasks log and print, and what becomes of the logging and the output of the program around them."""

import asyncio
import io
import logging
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from stormspark import AsyncBolt, BasicBolt, Fields, TopologyBuilder
from stormspark.local import LocalCluster, submit
from stormspark.testing import FixedTupleSpout

log = logging.getLogger("mine")


class Says(BasicBolt):
    """Prints and logs in each way in which a component can."""

    def prepare(self, conf, context):
        self._context = context
        self._pool = ThreadPoolExecutor(1)

    def execute(self, tup, collector):
        word = tup[0]
        print("print", word)
        sys.stderr.write(f"stderr {word}\n")
        log.info("log %s", word)
        self._context.logger.info("context %s", word)
        thread = threading.Thread(target=self._in_thread, args=(word,))
        thread.start()
        thread.join()
        self._pool.submit(print, "pool", word).result()
        self._context.shared_executor.submit(print, "shared pool", word).result()

    def _in_thread(self, word):
        print("thread", word)
        inner = threading.Thread(target=print, args=("thread of a thread", word))
        inner.start()
        inner.join()

    def declare_output_fields(self, declarer):
        pass


class Asks(AsyncBolt):
    async def execute(self, tup):
        print("coroutine", tup[0])
        await asyncio.create_task(self._inner(tup[0]))
        await asyncio.to_thread(print, "to_thread", tup[0])

    async def _inner(self, word):
        print("its task", word)

    def declare_output_fields(self, declarer):
        pass


SAID = {
    "stdout: print", "stderr: stderr", "mine: log", "stormspark.task.{}: context", "stdout: thread", "stdout: thread of a thread",
    "stdout: pool", "stdout: shared pool",
}  # fmt: skip
ASKED = {"stdout: coroutine", "stdout: its task", "stdout: to_thread"}


def topology():
    builder = TopologyBuilder()
    for word in ("one", "two"):
        builder.set_spout(word, FixedTupleSpout([(word,)], Fields("word")))
        builder.set_bolt(f"says-{word}", Says()).shuffle_grouping(word)
        builder.set_bolt(f"asks-{word}", Asks()).shuffle_grouping(word)
    return builder.create_topology("output")


def lines(file):
    """What a file says, without time and level."""
    return {line.split(" ", 3)[3] for line in file.read_text().splitlines()}


def check_files(folder):
    for word in ("one", "two"):
        expected = {f"{said.format(f'says-{word}')} {word}" for said in SAID}
        assert lines(folder / f"says-{word}-0.log") == expected
        assert lines(folder / f"asks-{word}-0.log") == {f"{said} {word}" for said in ASKED}
    worker = folder / "worker-0.log"
    assert not worker.exists() or not any("one" in line or "two" in line for line in lines(worker))


@contextmanager
def logging_as_python_starts():
    """Set the root logger up as if nobody had configured logging. pytest adds its handlers before a test, but after fixtures."""
    root = logging.getLogger()
    handlers, level, root.handlers = root.handlers, root.level, []
    root.setLevel(logging.WARNING)
    try:
        yield root
    finally:
        root.handlers = handlers
        root.setLevel(level)


def test_an_embedding_program_keeps_its_output_and_its_logging(tmp_path, capsys):
    with logging_as_python_starts() as root:
        mine = logging.StreamHandler(io.StringIO())
        root.addHandler(mine)
        before = sys.stdout, sys.stderr
        running = submit(topology(), conf={"stormspark.log.dir": str(tmp_path)})
        print("the program prints")
        log.info("the program's level is WARNING")
        log.warning("the program warns")
        running.run_until_idle()
        running.stop()
        assert (sys.stdout, sys.stderr) == before
        assert root.handlers == [mine]
        assert (root.level, mine.filters) == (logging.WARNING, [])
        out = capsys.readouterr()
        assert "the program prints\n" in out.out
        assert "thread of a thread one\n" in out.out
        assert "stderr two\n" in out.err
        assert mine.stream.getvalue() == "the program warns\n"
        check_files(tmp_path)


def test_warnings_of_a_program_without_logging_still_go_to_stderr(tmp_path, capsys):
    with logging_as_python_starts():
        with LocalCluster() as cluster:
            for name in ("first", "second"):
                conf = {"stormspark.log.dir": str(tmp_path / name)}
                cluster.submit_topology(name, conf, topology())
            log.warning("only once")
        assert capsys.readouterr().err.count("only once") == 1


def test_topologies_of_one_program_do_not_get_each_others_lines(tmp_path, capsys):
    with LocalCluster() as cluster:
        running = [
            cluster.submit_topology(name, {"stormspark.log.dir": str(tmp_path / name)}, topology())
            for name in ("first", "second")
        ]
        for one in running:
            one.run_until_idle()
    for name in ("first", "second"):
        check_files(tmp_path / name)
    assert capsys.readouterr().out.count("print one\n") == 2


def test_a_program_for_one_topology_shows_everything_once(tmp_path, capsys):
    with logging_as_python_starts() as root:
        shown = []
        root.addHandler(logging.StreamHandler())
        handlers, before = root.handlers[:], (sys.stdout, sys.stderr)
        conf = {"stormspark.log.dir": str(tmp_path)}
        running = submit(
            topology(), conf=conf, show=lambda task, record: shown.append((task, record.getMessage()))
        )
        running.run_until_idle()
        running.stop()
        assert (sys.stdout, sys.stderr) == before
        assert (root.handlers, root.level) == (handlers, logging.WARNING)
        assert capsys.readouterr() == ("", "")
        check_files(tmp_path)
        said = {
            (f"says-{word}[0]", f"{one.partition(': ')[2]} {word}") for one in SAID for word in ("one", "two")
        }
        asked = {
            (f"asks-{word}[0]", f"{one.partition(': ')[2]} {word}")
            for one in ASKED
            for word in ("one", "two")
        }
        assert sorted(shown) == sorted(said | asked)


class PrintsOddly(BasicBolt):
    def execute(self, tup, collector):
        sys.stdout.buffer.write(b"bytes \xff\n")
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        wrapped = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", write_through=True)
        wrapped.write("wrapped\n")
        print("no newline", end="", flush=True)

    def declare_output_fields(self, declarer):
        pass


def test_what_scripts_do_with_stdout_works(tmp_path):
    builder = TopologyBuilder()
    builder.set_spout("words", FixedTupleSpout([("a",)], Fields("word")))
    builder.set_bolt("odd", PrintsOddly()).shuffle_grouping("words")
    shown = []
    running = submit(
        builder.create_topology("odd"),
        conf={"stormspark.log.dir": str(tmp_path)},
        show=lambda task, record: shown.append(record.getMessage()),
    )
    running.run_until_idle()
    running.stop()
    assert running.error is None
    assert shown == ["bytes \ufffd", "wrapped", "no newline"]


class LogsWrongly(BasicBolt):
    def execute(self, tup, collector):
        log.info("%d", "no number")
        print("goes on")

    def declare_output_fields(self, declarer):
        pass


def test_a_message_without_a_format_fails_no_tuple(tmp_path):
    builder = TopologyBuilder()
    builder.set_spout("words", FixedTupleSpout([("a",)], Fields("word")))
    builder.set_bolt("wrong", LogsWrongly()).shuffle_grouping("words")
    shown = []
    with logging_as_python_starts():  # pytest's own handler would raise
        running = submit(
            builder.create_topology("wrong"),
            conf={"stormspark.log.dir": str(tmp_path)},
            show=lambda task, record: shown.append(record.getMessage()),
        )
        running.run_until_idle()
        running.stop()
    assert running.statistics().components["words"].acked == 1
    assert shown[0] == "--- Logging error ---"
    assert shown[-1] == "goes on"
