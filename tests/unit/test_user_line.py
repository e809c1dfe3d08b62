"""Which line of user code an error or a warning names."""

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, SimpleNamespace
from typing import Any

import click
import pytest

from stormspark.errors import StormsparkError
from stormspark.user_line import raised_at, running_at, waiting_at
from stormspark.worker.executors.thread import ExecutorThread

HERE = __file__


def error_of(call: Callable[[], object]) -> BaseException:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("it did not raise")


def line_of(call: Callable[..., object]) -> str:
    return f"{HERE}:{call.__code__.co_firstlineno + 1}"


def reads_json():
    json.loads("{")


def test_an_error_in_a_library_names_the_users_line_that_called_it():
    assert raised_at(error_of(reads_json)) == line_of(reads_json)


def no_number():
    click.INT.convert("one", None, None)  # type: ignore[arg-type]


def innermost(error: BaseException) -> BaseException:
    """Cut this file's frames off."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == HERE:
        trace = trace.tb_next
    return error.with_traceback(trace)


def test_without_a_line_of_the_users_own_an_error_names_the_line_of_an_installed_package():
    raised = raised_at(innermost(error_of(no_number)))
    assert raised is not None and "click/types.py:" in raised


def test_a_line_of_python_itself_is_not_named():
    assert raised_at(innermost(error_of(reads_json))) is None


def test_an_error_of_the_package_names_the_line_of_its_cause():
    error = StormsparkError("raised in prepare")
    error.__cause__ = error_of(reads_json)
    assert raised_at(error) == line_of(reads_json)


def test_a_compiled_module_of_the_package_is_no_code_of_the_user():
    """Its frames have the file's name from the time when it was compiled."""
    names: dict[str, Any] = {}
    exec(compile("def emit(): raise ValueError", "stormspark/worker/tuples/outlets.py", "exec"), names)

    def emits():
        names["emit"]()

    assert raised_at(error_of(emits)) == line_of(emits)


def test_an_error_without_frames_names_no_line():
    assert raised_at(StormsparkError("made, and not raised")) is None


def frame_of(thread: int) -> FrameType | None:
    return sys._current_frames().get(thread)


def executor() -> ExecutorThread:
    # `id` is no user code, so a thread that waits for the executor is in no user code.
    return ExecutorThread("b:0", clock=lambda: 0.0, ring=lambda: None, serve=id, enter=lambda task: None)  # type: ignore[arg-type]


@contextmanager
def waiting(call: Callable[[threading.Event, threading.Event], None]) -> Iterator[int]:
    """Make ``call`` on an executor's thread; give the id of that thread."""
    inside, go = threading.Event(), threading.Event()
    idents: list[int] = []

    def run() -> None:
        idents.append(threading.get_ident())
        call(inside, go)

    thread = executor()
    thread.submit("b[0]", run)
    assert inside.wait(60)
    try:
        yield idents[0]
    finally:
        go.set()
        thread.end()


def waits(inside: threading.Event, go: threading.Event) -> None:
    inside.set()
    go.wait()


def test_code_that_runs_is_named_with_its_call_and_its_line():
    with waiting(waits) as thread:
        found = running_at(frame_of(thread), "nothing")
        while found is None or not found.line.endswith(str(waits.__code__.co_firstlineno + 2)):
            found = running_at(frame_of(thread), "nothing")
    assert found.call == "run", "the function that the package has called"
    assert found.line == f"{HERE}:{waits.__code__.co_firstlineno + 2}"


def test_a_thread_in_the_package_alone_runs_no_user_code():
    thread = executor()
    done = threading.Event()
    thread.submit("b[0]", done.set)
    assert done.wait(60)
    ident = thread._thread.ident
    assert ident is not None
    while not thread.is_idle:
        pass
    assert running_at(frame_of(ident), "nothing") is None
    thread.end()


async def waits_for(future: asyncio.Future[None]) -> None:
    await asyncio.wait_for(future, 60)


async def cleanup(future: asyncio.Future[None]) -> None:
    await waits_for(future)


def test_a_coroutine_that_waits_is_named_with_its_call_and_its_line():
    async def look() -> object:
        future = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(cleanup(future))
        await asyncio.sleep(0)
        found = waiting_at(task.get_coro())
        future.set_result(None)
        await task
        assert waiting_at(task.get_coro()) is None, "it has returned"
        return found

    assert asyncio.run(look()) == ("cleanup", line_of(waits_for))


def test_a_thread_that_has_ended_runs_nothing():
    assert running_at(frame_of(-1), "nothing") is None


def test_the_search_ends_at_the_module_below():
    """A user's own code opens the worker on the local engine, but it is not the code that keeps the worker waiting."""
    inside, go = threading.Event(), threading.Event()
    thread = executor()

    def users_own() -> None:
        inside.set()
        thread.run("b[0]", go.wait)

    caller = threading.Thread(target=users_own)
    caller.start()
    assert inside.wait(60) and caller.ident is not None
    while not thread.has_started:
        pass
    try:
        assert running_at(frame_of(caller.ident), "stormspark.worker.executors.thread") is None
    finally:
        go.set()
        caller.join()
        thread.end()


def test_an_error_in_a_cell_of_a_notebook_names_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython keeps a cell in a file with a number for a name, which says nothing to people."""

    class Compiler:
        def format_code_name(self, name: str) -> tuple[str, str] | None:
            return ("Cell", "In[3]") if name == "/tmp/ipykernel_7/618.py" else None

    cells = SimpleNamespace(get_ipython=lambda: SimpleNamespace(compile=Compiler()))
    monkeypatch.setitem(sys.modules, "IPython", cells)
    cell: dict[str, Any] = {}
    exec(compile("\ndef execute(tup):\n    return 1 / 0\n", "/tmp/ipykernel_7/618.py", "exec"), cell)
    assert raised_at(error_of(lambda: cell["execute"](None))) == "In[3]:3"
