"""Ends the children of this process when it ends, however that is: also by ``kill -9``.

A child has a session of its own, so that it can be ended with all that it has forked. But a process that is killed ends nothing,
and the kernel's parent-death signal reaches a child only, not the processes that it has forked, and comes already when the
*thread* ends that has started it. So there is a watchman: a small shell whose standard input is a pipe that only this process
holds. It is told of each session, and when the pipe ends it kills what is left of them. It costs a megabyte, once a process.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading

__all__ = ["Reaper", "kill_session", "reaper"]

# Shell built-ins only. Fields of a stat file are told from the closing bracket on, since a command's name may hold anything:
# state, parent, group, session.
_WATCHMAN = r"""
trap '' HUP INT TERM
folder=$1 sessions=
while read -r what session; do
  if [ "$what" = + ]; then
    sessions="$sessions $session"
  else
    left=
    for one in $sessions; do [ "$one" = "$session" ] || left="$left $one"; done
    sessions=$left
  fi
done
for session in $sessions; do kill -s KILL -- "-$session"; done
for stat in /proc/[0-9]*/stat; do
  read -r line <"$stat" || continue
  set -- ${line##*) }
  case " $sessions " in
    *" $4 "*) pid=${stat#/proc/}; kill -s KILL "${pid%/stat}" ;;
  esac
done
rm -rf -- "$folder"
"""


def kill_session(leader: int) -> None:
    """Kill a process that leads a session, and all that are in it. The leader must not have been waited for: then the number
    could be another's.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if pid != leader and os.getsid(pid) == leader:
                os.kill(pid, signal.SIGKILL)


class Reaper:
    """Knows the sessions of this process's children, and has the watchman know them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._sessions: set[int] = set()
        #: Where children have their folders; the watchman removes it.
        self.folder = tempfile.mkdtemp(prefix="stormspark-children-")
        self._watchman: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def add(self, session: int) -> None:
        """End this session with this process."""
        with self._lock:
            self._sessions.add(session)
            self._tell("+", session)

    def remove(self, session: int) -> None:
        """It has ended."""
        with self._lock:
            self._sessions.discard(session)
            self._tell("-", session)

    def close(self) -> None:
        """End what is left, now."""
        if os.getpid() != self._process:
            return  # we are a copy in a process that was forked off
        with self._lock:
            watchman, self._watchman = self._watchman, None
            if watchman is not None:
                assert watchman.stdin is not None
                with contextlib.suppress(OSError):
                    watchman.stdin.close()
                watchman.wait()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _tell(self, what: str, session: int) -> None:
        told = f"{what} {session}\n"
        for _ in range(2):
            if self._watchman is None:
                self._watchman = subprocess.Popen(
                    ["sh", "-c", _WATCHMAN, "stormspark-watchman", self.folder],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # what kills our process group must leave it alive
                    bufsize=0,
                    cwd="/",
                )
                told = "".join(f"+ {one}\n" for one in sorted(self._sessions))
            assert self._watchman.stdin is not None
            try:
                self._watchman.stdin.write(told.encode())
            except BrokenPipeError:  # somebody has killed it
                with contextlib.suppress(OSError):
                    self._watchman.stdin.close()
                self._watchman.wait()
                self._watchman = None
            else:
                return


_reapers: dict[int, Reaper] = {}
_making = threading.Lock()


def reaper() -> Reaper:
    """The one of this process; a process that was forked off has its own."""
    with _making:
        me = os.getpid()
        if me not in _reapers:
            _reapers.clear()
            _reapers[me] = Reaper()
        return _reapers[me]
