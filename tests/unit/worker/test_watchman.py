"""How a worker process has ended, as its watchman sees it. Real processes, but no Spark."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from stormspark.worker.host.lifeline import is_alive
from stormspark.worker.host.link import Endpoint
from stormspark.worker.host.messages import ProcessId
from stormspark.worker.host.watchman import how_it_ended, remove_old_reports, report_of
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

WORKER = """
import ctypes, os, signal, sys, threading
from pathlib import Path
from types import SimpleNamespace
from stormspark.worker.host import watchman
from stormspark.worker.host.lifeline import this_process
from stormspark.worker.host.link import Endpoint

def crash(): ctypes.string_at(0)  # line 8

def on_thread():
    watchman.note_thread("count[1]")
    crash()

folder = sys.argv[1]
output, own = Path(folder, "worker-2.out"), Path(folder, "worker-2-abc"); own.mkdir(); (own / "reply-0").write_text("kept")
launch = SimpleNamespace(nimbus=Endpoint(folder + "/nimbus", None), worker=2, incarnation=5)
watchman.become_watched(launch, output, own)
os.write(1, ("%d %d" % this_process()[1:]).encode())
log = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
for standard in (1, 2):
    os.dup2(log, standard)
watchman.note_task("sink[0]")
{end}
"""


#: Native code ends the process, so nobody hears of the line.
NATIVE_EXIT = "ctypes.CDLL(None)._exit(3)"


#: Counts kills in files of a test.
COUNTED = "watchman.limit_of = lambda pid: SimpleNamespace(size=200 << 20, counters=(folder + '/group', folder + '/host')); "


def ended(folder: Path, end: str, group: Path | None = None, before: str = "") -> str | None:
    """Let a worker end like this, in a control group, and return how it has ended."""
    script = folder / "user_script.py"
    begins = "watchman.become_watched("
    script.write_text(WORKER.format(end=end).replace(begins, before + begins))
    command = [sys.executable, str(script), str(folder)]
    if group is not None:
        command = ["sh", "-c", 'echo $$ > "$0"; exec "$@"', str(group / "cgroup.procs"), *command]
    started = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    pid, since = map(int, started.stdout.split())
    nimbus = Endpoint(str(folder / "nimbus"), None)
    process = ProcessId("here", pid, since)
    wait_for(lambda: not is_alive(process))
    return how_it_ended(process, report_of(nimbus, pid), "spout[0], sink[0]")


@pytest.fixture
def limited_group() -> Iterator[Path]:
    """A control group with a limit of 150 MB, where this process may make one."""
    root = Path("/sys/fs/cgroup")
    old, new = root / "memory" / f"stormspark-{os.getpid()}", root / f"stormspark-{os.getpid()}"
    group, limit = (old, "memory.limit_in_bytes") if old.parent.exists() else (new, "memory.max")
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        try:
            (group / limit).write_text(str(150 << 20))
        except OSError as error:
            pytest.skip(f"no limit of memory can be set here: {error}")
        yield group
        wait_for(lambda: not (group / "cgroup.procs").read_text())
    finally:
        group.rmdir()


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("crash()", r"was killed by SIGSEGV while sink\[0\] ran \(user_script.py:9\)"),
        ("os.abort()", r"was killed by SIGABRT while sink\[0\] ran \(user_script.py:24\)"),
        (
            "threading.Thread(target=on_thread).start(); threading.Event().wait()",
            r"was killed by SIGSEGV while count\[1\] ran \(user_script.py:9\)",
        ),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            # Here the kernel may count other kills, or none.
            r"was killed by (SIGKILL|the kernel) while sink\[0\] ran.*",
        ),
        ("os.kill(os.getpid(), signal.SIGTERM)", r"was killed by SIGTERM while sink\[0\] ran"),
        ("os._exit(3)", r"ended by os\._exit\(3\) in <module> at .*user_script\.py:24"),
        (NATIVE_EXIT, r"ended with exit code 3 while sink\[0\] ran \(by os._exit, or by native code\)"),
        (
            f"watchman.note_task(None); {NATIVE_EXIT}",
            r"ended with exit code 3 \(by os._exit, or by native code\)",
        ),
    ],
)
def test_the_signal_or_the_exit_code_and_the_task_are_named(tmp_path: Path, end: str, words: str) -> None:
    tmp_path.chmod(0o700)
    how = ended(tmp_path, end)
    assert how is not None
    assert re.fullmatch(f"its process {words}", how), how
    assert (
        "while sink[0] ran on the worker's thread\n" in (tmp_path / "worker-2.out").read_text()
        or "None" in end
    )


@pytest.mark.parametrize(
    ("in_group", "on_host", "words", "noted"),
    [
        (
            "2",
            "3",
            r"SIGKILL while sink\[0\] ran \(by kill -9, and not by the kernel for lack of memory\)",
            "",
        ),
        (
            "2",
            "0",
            r"SIGKILL while sink\[0\] ran \(by kill -9, and not by the kernel for lack of memory\)",
            "",
        ),
        (
            "3",
            "3",
            r"the kernel while sink\[0\] ran: the memory limit of its container, 200 MB, was .*",
            " for",
        ),
        (
            None,
            "3",
            r"SIGKILL while sink\[0\] ran, perhaps by the kernel: the host had no memory left for some process .*",
            ", perhaps for",
        ),
        (
            None,
            "0",
            r"SIGKILL while sink\[0\] ran \(by kill -9, and not by the kernel for lack of memory\)",
            "",
        ),
        (
            None,
            None,
            r"SIGKILL while sink\[0\] ran \(by kill -9, or because the system had no memory left\)",
            "",
        ),
    ],
)
def test_kills_count_in_the_group_and_only_without_it_on_the_host(
    tmp_path: Path, in_group: str | None, on_host: str | None, words: str, noted: str
) -> None:
    """The kernel had killed two processes of the group, and none on the host. Now it has killed so many."""
    tmp_path.chmod(0o700)
    if in_group is not None:
        (tmp_path / "group").write_text("oom 1\noom_kill 2\n")
        (tmp_path / "group-later").write_text(f"oom 1\noom_kill {in_group}\n")
    os.mkfifo(tmp_path / "host")  # whoever has written into it knows that the watchman has read all
    line = "no such line" if on_host is None else "oom_kill"
    (tmp_path / "host-later").write_text(f"{line} {on_host}\n")
    ends = (
        f"Path(folder, 'host').write_text('{line} 0\\n')\n"
        "for file in Path(folder).glob('*-later'): file.rename(str(file)[:-6])\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    how = ended(tmp_path, ends, before=COUNTED)
    assert how is not None
    assert re.fullmatch(f"its process was killed by {words}", how), how
    assert (f"killed by signal 9{noted} lack of memory (" in (tmp_path / "worker-2.out").read_text()) is bool(
        noted
    )


def test_the_limit_of_the_container_is_named(tmp_path: Path, limited_group: Path) -> None:
    tmp_path.chmod(0o700)
    how = ended(tmp_path, "taken = []\nwhile True: taken.append(b'x' * (1 << 20))", limited_group)
    assert how is not None
    assert re.match(
        r"its process was killed by the kernel while sink\[0\] ran: the memory limit of its container, 150 MB, was reached, and "
        r"the process itself had used up to 1\d\d MB. The worker has spout\[0\], sink\[0\]. Give the container more memory: ",
        how,
    ), how
    assert "killed by signal 9 for lack of memory (" in (tmp_path / "worker-2.out").read_text()


def test_a_worker_that_ends_in_order_leaves_no_report_and_no_watchman(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert ended(tmp_path, "watchman.exit_in_order(1)") is None

    def gone() -> bool:
        return not any(
            str(tmp_path) in " ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])
        )

    wait_for(gone)
    assert list(tmp_path.glob("ended-*")) == []


def test_a_worker_that_was_killed_leaves_nothing_once_its_end_was_read(tmp_path: Path) -> None:
    """Neither the report, nor its folder, which may hold gigabytes of replies: workers may die each hour, for weeks."""
    tmp_path.chmod(0o700)
    assert "SIGKILL" in str(ended(tmp_path, "os.kill(os.getpid(), 9)"))
    wait_for(lambda: not [*tmp_path.glob("ended-*"), *tmp_path.glob("worker-2-*")])
    assert (tmp_path / "worker-2.out").exists()


def test_a_report_that_nobody_asks_for_goes_later(tmp_path: Path) -> None:
    nimbus = Endpoint(str(tmp_path / "nimbus"), None)
    for pid, age in ((7, 100.0), (8, 10.0)):
        report_of(nimbus, pid).write_bytes(b"9\n")
        os.utime(report_of(nimbus, pid), (time.time() - age, time.time() - age))
    remove_old_reports(nimbus)
    assert list(tmp_path.glob("ended-*")) == [report_of(nimbus, 8)]


def test_a_folder_of_somebody_else_gets_no_report(tmp_path: Path) -> None:
    """Without a report, at least the output names the task."""
    tmp_path.chmod(0o777)
    assert ended(tmp_path, NATIVE_EXIT) is None
    assert (
        tmp_path / "worker-2.out"
    ).read_text() == "the process ended with exit code 3, while sink[0] ran on the worker's thread\n"
