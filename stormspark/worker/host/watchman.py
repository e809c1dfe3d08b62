"""Finds out how a worker process has ended: its exit code or the signal that killed it, and in which task.

Only the parent of a process gets its exit code. So the process that starts a worker stays its parent, but it becomes another
program: a bare Python interpreter that runs the script below. This *watchman* has 5 MB of memory and waits in the kernel.

    the starting process -> forks -> the watchman -> forks -> the worker

The worker and the watchman share a page of memory. The worker notes there which task its thread is in, once per chunk of tuples,
and which task each executor's thread works for. At SIGSEGV and other errors of native code, Python writes the stacks of all
threads to the worker's output file (`faulthandler`). If the worker does not end in order, the watchman writes all that into a
file beside nimbus's socket, which nimbus reads (`how_it_ended`), and into the worker's output file. On another host than the
driver's there is only the output file. Then the watchman removes the worker's folder, which may hold replies of any size.
"""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

from stormspark.private_files import is_private
from stormspark.process_exits import tell_exits
from stormspark.user_line import CodePlace
from stormspark.worker.host.launch import Launch
from stormspark.worker.host.lifeline import is_alive
from stormspark.worker.host.link import Endpoint
from stormspark.worker.host.memory_limits import NOT_KNOWN, MemoryAtEnd, limit_of
from stormspark.worker.host.messages import ProcessId
from stormspark.worker.host.task_threads import running_task

__all__ = [
    "become_watched",
    "exit_in_order",
    "how_it_ended",
    "note_task",
    "note_thread",
    "remove_old_reports",
    "report_of",
]

_PAGE = 4096
#: The place of the name of the task that the worker's thread is in. Names of threads follow it.
_TASK = 256
#: The place of the byte that is set if the process ends in order.
_LAST = _PAGE - 1
#: A process whose connection has ended may live a little longer. The watchman needs some milliseconds after its end.
_ENDS_SECS, _WRITES_SECS = 0.3, 2.0
#: Nobody asks for a report that is older than this.
_ASKED_SECS = 60.0
#: At most so many tasks are named if it is not known which of them ran.
_NAMED = 3

#: Waits for the worker, the child ``pid``. Then writes into ``report`` the wait status and what is known of memory, the shared
#: page, and the end of output. The file appears whole or not at all. Then removes the worker's folder.
_WATCHMAN = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
pid, page, report = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
output, folder, limit, counters = sys.argv[4], sys.argv[5], sys.argv[6], sys.argv[7:]
def kills():
    found = []
    for name in counters:
        try:
            lines = open(name, "rb").read().splitlines()
            found += [int(line.split()[1]) for line in lines if line.startswith(b"oom_kill ")][:1] or [-1]
        except (OSError, ValueError):
            found.append(-1)
    return found
before = kills()
_, status, used = os.wait4(pid, 0)
killed = [now - then if min(now, then) >= 0 else -1 for now, then in zip(kills(), before)]
noted = os.pread(page, 4096, 0)
if noted.endswith(b"\\1"):
    sys.exit()
said = b""
try:
    file = os.open(output, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW)
    said = os.pread(file, 1 << 15, max(0, os.fstat(file).st_size - (1 << 15)))
    task = noted[:256].rstrip(b"\\0") or b"no task"
    code = os.waitstatus_to_exitcode(status)
    how = b"was killed by signal %d" % -code if code < 0 else b"ended with exit code %d" % code
    in_group, on_host = killed
    if code == -9 and (in_group > 0 or in_group < 0 < on_host):
        found = (b"" if in_group > 0 else b", perhaps", used.ru_maxrss >> 10, int(limit) >> 20)
        how += b"%b for lack of memory (it had used up to %d MB; limit of its container in MB, 0 for none: %d)" % found
    os.write(file, b"the process %b, while %b ran on the worker's thread\\n" % (how, task))
except OSError:
    pass
try:
    file = os.open(report + ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(file, b"%d %d %b %d %d\\n" % (status, used.ru_maxrss, limit.encode(), *killed) + noted + said)
    os.rename(report + ".new", report)
except OSError:
    pass
import shutil  # only now, because it needs a megabyte, and a watchman waits for weeks
shutil.rmtree(folder, ignore_errors=True)
"""

_NONE = bytes(_TASK)
_MORE_MEMORY = (
    "Give the container more memory: on YARN and Kubernetes by spark.executor.memoryOverhead (`stormspark explain` prints what "
    "the plan needs), or let its components keep less, or run the topology with fewer workers in each executor"
)
#: What `_print_exit` prints.
_BY_CODE = re.compile(r"^the process ends by (os\._exit\(.*)$", re.MULTILINE)


class _Page:
    """The page that this process shares with its watchman."""

    def __init__(self) -> None:
        #: None if this process has no watchman.
        self.shared: mmap.mmap | None = None
        self._threads: dict[int, bytes] = {}
        self._noting = threading.Lock()

    def note_thread(self, name: str) -> None:
        """See `note_thread`."""
        if self.shared is None:
            return
        with self._noting:
            self._threads[threading.get_ident()] = name.encode()
            lines = b"".join(b"%x %b\n" % one for one in self._threads.items())
            self.shared[_TASK:_LAST] = lines[: _LAST - _TASK].ljust(_LAST - _TASK, b"\0")


_page = _Page()


def become_watched(launch: Launch, output: Path, folder: Path) -> None:
    """Go on as a new process in a session of its own, without a terminal, that does not depend on the process that started this
    one. A watchman waits for the new process. If that one does not end in order, the watchman reports that, and removes its
    ``folder``.
    """
    # If the driver is on another host, there is no such folder here. If it is somebody else's, nothing may be written there.
    reports = is_private(os.path.dirname(launch.nimbus.unix))
    page = os.memfd_create("task") if hasattr(os, "memfd_create") else -1
    if os.fork():
        os._exit(0)
    os.setsid()
    if page >= 0:
        os.ftruncate(page, _PAGE)
        if worker := os.fork():
            _watch(worker, page, str(report_of(launch.nimbus, worker)) if reports else "", output, folder)
        _page.shared = mmap.mmap(page, _PAGE)
        os.close(page)
        faulthandler.enable(2)
        os.setsid()  # so that the worker can end its process group without its watchman
        tell_exits(_print_exit)


def _watch(worker: int, page: int, report: str, output: Path, folder: Path) -> None:
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)  # the pipes to the process that started this one end with the worker's
        os.set_inheritable(page, True)
        os.chdir("/")
        limit = limit_of(worker)
        paths = [report, str(output), str(folder)]
        arguments = [str(worker), str(page), *paths, str(limit.size), *limit.counters]
        os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", _WATCHMAN, *arguments])
    finally:
        os._exit(1)


def exit_in_order(code: int) -> NoReturn:
    """End this process at once. The watchman learns that it ends because it was told to, whatever its exit code is."""
    if _page.shared is not None:
        _page.shared[_LAST] = 1
    os._exit(code)


def _print_exit(code: int, place: CodePlace) -> None:
    """Print which task has called ``os._exit``, and where, for the report on how this process ended."""
    task = running_task()
    of = f" of {task}" if task else ""
    with contextlib.suppress(OSError):
        os.write(2, f"the process ends by os._exit({code}) in {place.call}{of} at {place.line}\n".encode())


def note_task(name: str | None) -> None:
    """Note that the worker's thread runs code of this task now. This takes a fraction of a microsecond."""
    if (shared := _page.shared) is not None:
        shared[:_TASK] = _NONE if name is None else name.encode()[:_TASK].ljust(_TASK, b"\0")


def note_thread(name: str) -> None:
    """Note that the calling thread, which is an executor's own, runs code of this task from now on."""
    _page.note_thread(name)


def report_of(nimbus: Endpoint, pid: int) -> Path:
    """Return the file in which the watchman of a worker process on nimbus's host reports.

    A worker's number and incarnation would not do: they begin anew if the topology is rebalanced.
    """
    return Path(os.path.dirname(nimbus.unix), f"ended-{pid}")


def remove_old_reports(nimbus: Endpoint) -> None:
    """Remove the reports that nobody asks for, such as those of workers that nimbus has killed itself."""
    for report in Path(os.path.dirname(nimbus.unix)).glob("ended-*"):
        with contextlib.suppress(OSError):
            if report.stat().st_mtime < time.time() - _ASKED_SECS:
                report.unlink()


def how_it_ended(process: ProcessId, report: Path, tasks: str = "") -> str | None:
    """Return how a worker process on this host has ended, in words; None if it still runs, or if nothing is known. Removes the
    report.

    Waits a moment for the end of the process and for the watchman. If the process was killed for lack of memory, the words name
    the ``tasks`` of the worker, because any of them may have taken the memory.
    """
    ends = time.monotonic() + _ENDS_SECS
    while is_alive(process):
        if time.monotonic() > ends:
            return None
        time.sleep(0.005)
    writes = time.monotonic() + _WRITES_SECS
    while time.monotonic() < writes:
        with contextlib.suppress(OSError):
            told = report.read_bytes()
            report.unlink()
            return _in_words(told, tasks)
        time.sleep(0.005)
    return None


def _in_words(report: bytes, of_worker: str = "") -> str:
    r"""Say how a process ended.

    >>> page = b"sink[0]".ljust(4096, b"\0")
    >>> print(_in_words(b"9\n" + page))
    its process was killed by SIGKILL while sink[0] ran (by kill -9, or because the system had no memory left)
    >>> print(_in_words(b"9 204800 0 0 3\n" + page))
    its process was killed by SIGKILL while sink[0] ran (by kill -9, and not by the kernel for lack of memory)
    >>> print(_in_words(b"768\n" + page))
    its process ended with exit code 3 while sink[0] ran (by os._exit, or by native code)
    >>> print(_in_words(b"768\n" + page + b"the process ends by os._exit(3) in execute at sink.py:7\n"))
    its process ended by os._exit(3) in execute at sink.py:7
    """
    status, _, rest = report.partition(b"\n")
    of_process, *of_memory = map(int, status.split())
    code, memory = os.waitstatus_to_exitcode(of_process), MemoryAtEnd(*of_memory) if of_memory else NOT_KNOWN
    page, output = rest[:_PAGE], rest[_PAGE:].decode(errors="replace")
    threads = (
        line.split(" ", 1) for line in page[_TASK:].decode(errors="replace").strip("\0\1").splitlines()
    )
    tasks = {words[0]: words[1] for words in threads if len(words) > 1}
    task = page[:_TASK].rstrip(b"\0").decode(errors="replace")
    why = ""
    if code in _CRASHES:
        thread, line = _crash(output)
        task = tasks.get(thread, task)
        why = f" ({line})" if line else ""
    elif not task:
        task = " or ".join(sorted(set(tasks.values()))[:_NAMED])
    while_ = f" while {task} ran" if task else ""
    if code >= 0:
        if by := _BY_CODE.findall(output)[-1:]:
            return f"its process ended by {by[0]}"
        return f"its process ended with exit code {code}{while_} (by os._exit, or by native code)"
    if code == -signal.SIGKILL and memory.why:
        has = f" The worker has {of_worker}." if of_worker else ""
        killer = f"the kernel{while_}" if memory.is_certain else f"SIGKILL{while_}, perhaps by the kernel"
        return f"its process was killed by {killer}: {memory.why}.{has} {_MORE_MEMORY}"
    if code == -signal.SIGKILL:
        why = " (by kill -9, or because the system had no memory left)"
        why = " (by kill -9, and not by the kernel for lack of memory)" if memory.is_known else why
    return f"its process was killed by {_name(-code)}{while_}{why}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


#: The signals of errors in native code, at which `faulthandler` writes the stacks.
_CRASHES = frozenset(
    -number for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
)
_NOT_USERS = tuple(
    str(folder) + os.sep for folder in (Path(__file__).parents[2], sys.prefix, Path(os.__file__).parent)
)


def _crash(output: str) -> tuple[str, str]:
    """Return the id of the thread that crashed, and the line of user code that it was at, from what `faulthandler` wrote last."""
    _, found, rest = output.rpartition("Current thread 0x")
    if not found:
        return "", ""
    thread = rest[:16].lstrip("0")
    frames = re.findall(r'File "([^"]+)", line (\d+) in ', rest.partition("\n\n")[0])
    # The innermost line outside of stormspark and of installed libraries is the user's.
    own = (f"{file}:{line}" for file, line in frames if not file.startswith(_NOT_USERS) and file[:1] != "<")
    return thread, os.path.basename(next(own, ""))
