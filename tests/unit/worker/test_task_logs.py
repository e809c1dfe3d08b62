"""A log file for each task, rotated; print does no harm (X53e, W8). In a process of its own: it takes stdout over."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import tracemalloc
from collections import deque
from pathlib import Path

import pytest

from stormspark.worker.host.printing import LogStream
from stormspark.worker.host.task_logs import TaskLogs, file_name

SCRIPT = """
import logging, sys, threading
from pathlib import Path
from stormspark.worker.host.task_logs import TaskLogs

logs = TaskLogs(Path(sys.argv[1]), 3, "INFO", max_bytes=2000, backup_count=2).install()
logging.info("the worker speaks")
logs.enter("count[2]")
print("printed by", "count")
sys.stdout.write("half a ")
logging.getLogger("mine").info("logged by count")
logging.getLogger("mine").debug("too quiet")
sys.stdout.write("line\\n")
thread = threading.Thread(target=lambda: print("from another thread"))
thread.start(); thread.join()
logs.enter("split[0]")
sys.stderr.write("an error of split\\n")
for number in range(200):
    print("line", number)
logs.enter(None)
print("again the worker")
"""


@pytest.mark.slow
def test_each_task_has_its_file_and_print_goes_there(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
    count = (tmp_path / "count-2.log").read_text()
    assert "INFO stdout: printed by count" in count and "half a line" in count
    assert "INFO mine: logged by count" in count and "too quiet" not in count
    worker = (tmp_path / "worker-3.log").read_text()
    assert "the worker speaks" in worker and "from another thread" in worker and "again the worker" in worker
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["count-2.log", "split-0.log", "split-0.log.1", "split-0.log.2", "worker-3.log"]
    assert "line 199" in (tmp_path / "split-0.log").read_text()
    assert all((tmp_path / name).stat().st_size <= 2000 for name in names)


def lines_of(*writes: str) -> tuple[list[str], LogStream]:
    lines: list[str] = []
    stream = LogStream(lines.append, sys.stderr)
    for text in writes:
        assert stream.write(text) == len(text)
    return lines, stream


@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        (("a\n", "b", "c\n"), ["a", "bc"]),
        (("a\r\nb\r\n",), ["a", "b"]),
        (("a\r", "\nb\n"), ["a", "b"]),
        (("\r 10 %", "\r 20 %", "\r100 %\n", "done\n"), ["100 %", "done"]),
        (("10 %\r", "20 %\r", "100 %\r", "\n"), ["100 %"]),
        (("a\rb\rc",), []),
        (("\n\n\r\n",), []),
        (("x" * 150_000 + "\n", "y\n"), ["x" * 65536, "x" * 65536, "x" * 18928, "y"]),
    ],
)
def test_a_carriage_return_begins_the_line_again(writes: tuple[str, ...], expected: list[str]) -> None:
    assert lines_of(*writes)[0] == expected


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["\r 42 %|####  |", "42 % ", ".", "\r", "x" * 10_000])
def test_output_without_newlines_costs_nothing_that_grows(piece: str) -> None:
    """tqdm writes a carriage return a step, and a newline at the end of days; each write takes as long as the first."""
    lines: deque[str] = deque(maxlen=3)
    stream = LogStream(lines.append, sys.stderr)
    tracemalloc.start()
    try:
        for _ in range(50_000):
            stream.write(piece)
        assert tracemalloc.get_traced_memory()[0] < 2_000_000
    finally:
        tracemalloc.stop()
    assert stream.lines.size <= 65536
    stream.lines.finish()
    stream.write("and on\n")
    assert lines[-1] == "and on"


def test_what_is_no_whole_line_is_logged_at_the_end() -> None:
    lines, stream = lines_of("first\n", "last words")
    assert lines == ["first"]
    stream.lines.finish()
    stream.lines.finish()
    assert lines == ["first", "last words"]


@pytest.mark.slow
def test_threads_that_print_lose_no_line() -> None:
    lines, stream = lines_of()
    threads = [
        threading.Thread(target=lambda n=n: [stream.write(f"{n}-{i}\n") for i in range(2000)])
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(lines) == sorted(f"{n}-{i}" for n in range(4) for i in range(2000))


@pytest.mark.slow
def test_a_line_that_has_not_ended_belongs_to_the_task_that_printed_it(tmp_path: Path) -> None:
    """X53e: at the end, and if another task prints on the same thread. Before, it went on in the other task's line."""
    script = """
import sys, threading
from pathlib import Path
from stormspark.worker.host.printing import end_of_output
from stormspark.worker.host.task_logs import TaskLogs
from stormspark.worker.host.task_threads import inherit

logs = TaskLogs(Path(sys.argv[1]), 0, "INFO", max_bytes=2000, backup_count=2).install()
for task in ("count[0]", "split[0]"):
    logs.enter(task)
    thread = threading.Thread(target=lambda: sys.stdout.write(f"half a thread's line of {task}"))
    inherit(thread)
    thread.start(); thread.join()  # the next thread gets the same identity
    sys.stdout.write(f"half a line of {task}")
logs.enter(None)
end_of_output(sys.stdout, sys.stderr)
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    for task in ("count", "split"):
        text = (tmp_path / f"{task}-0.log").read_text()
        assert text.count(f"half a thread's line of {task}[0]\n") == 1
        assert text.count(f"half a line of {task}[0]\n") == 1
    assert not (tmp_path / "worker-0.log").exists()


def test_no_two_tasks_and_no_worker_share_a_file() -> None:
    """X53e: two programs that rotate the same file lose lines."""
    tasks = [
        "a b[0]",
        "a_b[0]",
        "a/b[0]",
        "a\nb[0]",
        "worker[0]",
        "worker-0[0]",
        "é" * 300 + "[1]",
        "é" * 301 + "[1]",
    ]
    names = [file_name(task) for task in tasks]
    assert len({*names, "worker-0.log"}) == len(tasks) + 1
    assert all(len(f"{name}.10".encode()) < 255 for name in names)


def test_half_a_character_is_logged(tmp_path: Path) -> None:
    """W8: Python has such characters in names of files that are not UTF-8."""
    logs = TaskLogs(tmp_path, 0, "INFO", max_bytes=2000, backup_count=2)
    logs.handle(logging.makeLogRecord({"name": "mine", "levelno": logging.INFO, "msg": "caf\udce9"}))
    logs.leave()
    assert "caf\\udce9" in (tmp_path / "worker-0.log").read_text()
