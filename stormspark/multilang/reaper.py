"""Kills the children of this process when the process ends, even by ``kill -9``.

Each child has a session of its own, so that it can be killed together with all processes that it has forked. But if this process
is killed, it can't kill its children any more. The kernel's parent-death signal does not help. It reaches only the child, and not
the processes that the child has forked. Also, the kernel sends it as soon as the *thread* that started the child ends.

So there is a watchman: a small shell process, which reads its standard input from a pipe that only this process can write to. The
reaper writes to the pipe which sessions begin and which ones have ended. When this process ends, the pipe ends, too. Then the
watchman kills all processes that still run in open sessions. A watchman needs a megabyte of memory.
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

# The script uses only rm and the shell's built-in commands. In a stat file, it reads the fields after the last closing bracket:
# state, parent, group, session. Before this bracket is the command's name, which may contain any characters.
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
    """Kill a process that leads a session, and all processes of the session.

    Call this before you wait for the leader, because after the wait another process could get the leader's process id.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(OSError):  # the process has ended meanwhile
            if pid != leader and os.getsid(pid) == leader:
                os.kill(pid, signal.SIGKILL)


class Reaper:
    """The reaper of one process. It knows the sessions of the process's children, and tells their ids to the watchman."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._sessions: set[int] = set()
        #: The folder that holds the children's own folders. The watchman removes it.
        self.folder = tempfile.mkdtemp(prefix="stormspark-children-")
        self._watchman: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def add(self, session: int) -> None:
        """Make sure that this session is killed when this process ends."""
        with self._lock:
            self._sessions.add(session)
            self._notify("+", session)

    def remove(self, session: int) -> None:
        """Forget a session, because it has ended."""
        with self._lock:
            self._sessions.discard(session)
            self._notify("-", session)

    def close(self) -> None:
        """Kill all sessions that have not been removed."""
        if os.getpid() != self._process:
            return  # this object is a copy in a forked process
        with self._lock:
            watchman, self._watchman = self._watchman, None
            if watchman is not None:
                assert watchman.stdin is not None
                with contextlib.suppress(OSError):
                    watchman.stdin.close()
                watchman.wait()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _notify(self, what: str, session: int) -> None:
        lines = f"{what} {session}\n"
        for _ in range(2):
            if self._watchman is None:
                self._watchman = subprocess.Popen(
                    ["sh", "-c", _WATCHMAN, "stormspark-watchman", self.folder],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # a signal to this process's group must not reach the watchman
                    bufsize=0,
                    cwd="/",
                )
                lines = "".join(f"+ {one}\n" for one in sorted(self._sessions))
            assert self._watchman.stdin is not None
            try:
                self._watchman.stdin.write(lines.encode())
            except BrokenPipeError:  # the watchman was killed
                with contextlib.suppress(OSError):
                    self._watchman.stdin.close()
                self._watchman.wait()
                self._watchman = None
            else:
                return


_reapers: dict[int, Reaper] = {}
_making = threading.Lock()


def reaper() -> Reaper:
    """Return the reaper of this process. A forked process has its own."""
    with _making:
        me = os.getpid()
        if me not in _reapers:
            _reapers.clear()
            _reapers[me] = Reaper()
        return _reapers[me]
