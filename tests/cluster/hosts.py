"""Hosts on one machine, which share no more than real ones: an address, a name, a home, temporary folders, processes each.

A host is a set of Linux namespaces. Its first process reads a pipe from the process that made it, so all of the host ends with
that process, however it ends. Hosts are plugged into a switch, which has a network namespace of its own: from outside, and from
the machine's own addresses, nothing is reached. Only root may make them.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import psutil

__all__ = ["HOME", "NO_TEMPORARY", "Host", "Hosts"]

_NETWORK = "10.78.0"
#: What programs may look into and hosts do not share. ``/usr`` and ``/etc`` are the same on all, as on hosts of one image.
_OF_ITS_OWN = ("/home", "/root", "/work", "/opt", "/var/tmp", "/dev/shm", "/mnt/shared")
HOME = "/home/storm"
NO_TEMPORARY = "none"
#: Java is to start quickly. What it computes in these tests is little.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
_PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"


class Host:
    """One of them. What it has in its home and in ``/tmp`` is in ``folder``."""

    def __init__(self, switch: int, name: str, number: int, folder: Path, brings: Mapping[str, Path]) -> None:
        self.name, self.address, self.folder = name, f"{_NETWORK}.{number}", folder
        self._switch, self._brings = switch, brings
        # The same after a restart: the others still know it.
        self._mac = f"02:00:00:00:00:{number:02x}"
        self._ended = True
        self._space = ""
        self._commands: list[subprocess.Popen[bytes]] = []
        self._last: dict[str, subprocess.Popen[bytes]] = {}
        self.start()

    def start(self, temporary: str = "") -> None:
        """Switch it on. Its files are as they were.

        ``temporary`` is the size of a ``/tmp`` that has a limit, such as 64m, or `NO_TEMPORARY`: nobody can write to one.
        """
        for name in ("home", "tmp", "logs"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        first = _init(self.name, self.folder, self._brings, temporary)
        apart = [
            "unshare",
            "--net",
            "--mount",
            "--pid",
            "--uts",
            "--ipc",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ]
        self._process = _started([*apart, "bash", "-euc", first])
        self._ended = False
        [child] = psutil.Process(self._process.pid).children()
        self.pid = child.pid
        self._space = os.readlink(f"/proc/{self.pid}/ns/pid")
        port = f"to-{self.name}"
        on_switch = ["nsenter", "-t", str(self._switch), "-n"]
        _do(
            *on_switch,
            "ip",
            "link",
            "add",
            port,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "address",
            self._mac,
            "netns",
            str(self.pid),
        )
        _do(*on_switch, "ip", "link", "set", port, "master", "switch", "up")
        within = ["nsenter", "-t", str(self.pid), "-n"]
        _do(*within, "ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        for link in ("eth0", "lo"):
            _do(*within, "ip", "link", "set", link, "up")

    def run(self, command: str, output: str = "", **environment: str) -> subprocess.Popen[bytes]:
        """Start a command of the shell, as a user types it. What it prints is in the host's folder ``logs``."""
        own = {
            "PATH": _PATH,
            "HOME": HOME,
            "USER": "root",
            "LANG": "C.UTF-8",
            "HOSTNAME": self.name,
            "JAVA_TOOL_OPTIONS": _JAVA,
        }
        # On the host, and not before: `nsenter` itself must not load what LD_PRELOAD names.
        variables = [f"{name}={value}" for name, value in (own | environment).items()]
        words = ["nsenter", "-t", str(self.pid), "--all", f"--wdns={HOME}"]
        words += ["env", "-i", *variables, "bash", "-c", command]
        with (self.folder / "logs" / (output or "output")).open("ab") as log:
            started = subprocess.Popen(
                words, env={"PATH": _PATH}, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        self._commands.append(started)
        self._last[output] = started
        return started

    def runs(self, output: str) -> bool:
        """Whether the command still runs that was the last one to print there."""
        return self._last[output].poll() is None

    def said(self, output: str) -> str:
        """What a command has printed."""
        file = self.folder / "logs" / output
        return file.read_text(errors="replace") if file.exists() else ""

    def kill(self) -> None:
        """End all its processes at once. Its kernel tells those to whom they are connected."""
        with contextlib.suppress(ProcessLookupError):
            if not self._ended:
                os.kill(self.pid, signal.SIGKILL)
        self._ended = True
        assert self._process.stdin is not None
        for one in (self._process, *self._commands):
            one.wait()
        self._commands.clear()
        self._process.stdin.close()

    def lose_power(self) -> None:
        """End it so that nobody is told."""
        self.cut()
        self.kill()
        # The kernel takes a cable away late, and then the host could not be started again.
        subprocess.run(
            ["nsenter", "-t", str(self._switch), "-n", "ip", "link", "delete", f"to-{self.name}"],
            capture_output=True, check=False,
        )  # fmt: skip

    def cut(self) -> None:
        """Cut its network alone: no packet passes any more, and nobody is told."""
        _do("nsenter", "-t", str(self._switch), "-n", "ip", "link", "set", f"to-{self.name}", "nomaster")

    def join(self) -> None:
        """Mend what `cut` has cut."""
        _do(
            "nsenter",
            "-t",
            str(self._switch),
            "-n",
            "ip",
            "link",
            "set",
            f"to-{self.name}",
            "master",
            "switch",
        )

    def processes(self) -> list[psutil.Process]:
        """All that run on it, without its first one."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(OSError, psutil.NoSuchProcess):
                inside = os.readlink(f"/proc/{process.pid}/ns/pid") == self._space
                if inside and process.pid != self.pid and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found


class Hosts:
    """A switch, and the hosts that are plugged into it; their files are in ``folder``.

    ``brings`` is what each host has, by its name, read-only: from the place there to the one here.

    Raises `OSError` or `subprocess.CalledProcessError` where there may be none: not root, or a container without them.
    """

    def __init__(self, folder: Path, brings: Mapping[str, Mapping[str, Path]]) -> None:
        laid = "ip link add switch type bridge && ip link set switch up && echo up && read -r _"
        self._switch = _started(["unshare", "--net", "bash", "-c", laid])
        self._hosts: dict[str, Host] = {}
        self._names = folder / "hosts"
        known = [f"{_NETWORK}.{number} {name}" for number, name in enumerate(brings, 1)]
        folder.mkdir(parents=True, exist_ok=True)
        self._names.write_text("\n".join(["127.0.0.1 localhost", *known, ""]))
        try:
            for number, name in enumerate(brings, 1):
                own = {**brings[name], "/etc/hosts": self._names}
                self._hosts[name] = Host(self._switch.pid, name, number, folder / name, own)
        except BaseException:
            self.take_away()
            raise

    def __getitem__(self, name: str) -> Host:
        return self._hosts[name]

    def take_away(self) -> None:
        for host in self._hosts.values():
            host.kill()
        self._switch.kill()
        self._switch.wait()
        assert self._switch.stdin is not None
        self._switch.stdin.close()


def _init(name: str, folder: Path, brings: Mapping[str, Path], temporary: str) -> str:
    """The script of the first process. bash waits for orphans as an init does."""
    lines = [f"hostname {name}", "mount --make-rprivate /", "mount -t tmpfs none /mnt"]
    binds = [(HOME, folder / "home"), *brings.items()]
    if not temporary:
        binds.append(("/tmp", folder / "tmp"))
    for number, (_, outside) in enumerate(binds):
        at = f"/mnt/{number}"
        lines.append(
            f"{'mkdir' if outside.is_dir() else 'touch'} {at}; mount --bind {shlex.quote(str(outside))} {at}"
        )
    for place in _OF_ITS_OWN:
        if not place.startswith("/mnt/"):
            lines.append(f"[ ! -d {place} ] || mount -t tmpfs none {place}")
    if temporary == NO_TEMPORARY:
        lines += [f"mount -t tmpfs -o ro none {place}" for place in ("/tmp", "/var/tmp", "/dev/shm")]
    elif temporary:
        lines.append(f"mount -t tmpfs -o size={temporary} none /tmp")
    for number, (inside, outside) in enumerate(binds):
        make = "mkdir -p" if outside.is_dir() else "touch"
        lines.append(
            f"[ -e {inside} ] || {make} {inside}; mount --bind /mnt/{number} {inside}; umount /mnt/{number}"
        )
        if inside not in (HOME, "/tmp"):
            lines.append(f"mount -o remount,bind,ro {inside}")
    lines += ["umount /mnt", "echo up", "read -r _"]
    return "\n".join(lines)


def _started(command: list[str]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    up = process.stdout.readline()
    if up.strip() != b"up":
        process.kill()
        raise OSError(f"no namespaces here: {process.stderr.read().decode()}")
    process.stdout.close()
    process.stderr.close()
    return process


def _do(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
