"""Runs the same word count with Bytewax: what people would pick who want a stream library for Python and no cluster.

    python -m benchmarks.bytewax_peer [--processes 1 2] [--seconds 20]

Of the libraries that are in use it is the one that is like a Storm topology and runs on one machine without a broker: a graph of
operators in plain Python, keyed state, several workers, items that move between them. Quix Streams and Faust need Kafka for
their input and their state; Streamz is one process, and its keyed state is the user's own. It lives in an environment of its own
under build/bench, which is made when it is first asked for; `pyproject.toml` pins it as the extra ``bench``.

One process has one core and passes items by reference; two have both cores and send words to each other. Both are measured, and
the faster one counts. There are no acks and no snapshots in it: it does less than the acked word count. Prints one JSON line
with the keys of the Storm peer.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks.cpu import machine_busy
from benchmarks.places import CODE, ROOT

__all__ = ["bytewax_python", "run"]

_HOME = ROOT / "build" / "bench" / "bytewax"
_BATCH = 1000  # sentences that the source gives at once: of 1, 10, 100, 1000 and 5000 the fastest


class Reading(NamedTuple):
    """The state of all processes: words counted, CPU seconds, the machine's CPU seconds, and when."""

    words: int
    cpu: float
    machine: float
    at: float


def bytewax_python() -> Path:
    """The Python that has Bytewax; installs it where there is none. Raises CalledProcessError if that fails."""
    python = _HOME / "bin" / "python"
    if not (_HOME / ".installed").exists():
        wanted = tomllib.loads((CODE / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        subprocess.run([sys.executable, "-m", "venv", "--clear", _HOME], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted["bench"]]
        subprocess.run(pip, check=True, stdout=subprocess.DEVNULL)
        (_HOME / ".installed").touch()
    return python


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens at just now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class _Cluster:
    """So many processes of the dataflow."""

    def __init__(self, processes: int) -> None:
        addresses = ";".join(f"127.0.0.1:{port}" for port in _free_ports(processes))
        environment = {**os.environ, "PYTHONPATH": str(CODE)}
        self.children = [
            subprocess.Popen(
                [
                    bytewax_python(),
                    CODE / "benchmarks" / "bytewax_dataflow.py",
                    str(n),
                    addresses,
                    str(_BATCH),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=environment,
            )
            for n in range(processes)
        ]

    def read(self) -> Reading:
        """How far they are."""
        words, cpu = 0, 0.0
        for child in self.children:
            assert child.stdin is not None and child.stdout is not None
            child.stdin.write("\n")
            child.stdin.flush()
        for child in self.children:
            words += self._answer(child)
            times = psutil.Process(child.pid).cpu_times()
            cpu += times.user + times.system
        return Reading(words, cpu, machine_busy(), time.perf_counter())

    @staticmethod
    def _answer(child: subprocess.Popen[str]) -> int:
        """A child says other things on its standard output, too."""
        assert child.stdout is not None
        while line := child.stdout.readline():
            if line.strip().isdigit():
                return int(line)
        msg = f"a process of Bytewax ended with exit code {child.wait()}; run benchmarks/bytewax_dataflow.py to see why"
        raise RuntimeError(msg)

    def end(self) -> None:
        """Kill them: the dataflow has no end of its own."""
        for child in self.children:
            child.kill()
            child.wait()


def measure(processes: int, seconds: float, warmup: float) -> dict[str, Any]:
    """Measure so many processes once."""
    cluster = _Cluster(processes)
    try:
        while not cluster.read().words:
            time.sleep(0.1)
        time.sleep(warmup)
        first = cluster.read()
        time.sleep(seconds)
        last = cluster.read()
    finally:
        cluster.end()
    words, cpu, wall = last.words - first.words, last.cpu - first.cpu, last.at - first.at
    return {
        "engine": "bytewax",
        "case": "wordcount_unacked",
        "processes": processes,
        "words_per_s": round(words / wall),
        "words_per_cpu_s": round(words / cpu) if cpu else None,
        "cpu_s": round(cpu, 2),
        "wall_s": round(wall, 2),
        "other_cpu_s": round(max(0.0, last.machine - first.machine - cpu), 2),
    }


def run(seconds: float, warmup: float, processes: tuple[int, ...] = (1, 2)) -> dict[str, Any]:
    """The fastest of these numbers of processes, with the others under ``slower``."""
    figures = sorted((measure(n, seconds, warmup) for n in processes), key=lambda one: one["words_per_s"])
    return {**figures[-1], "slower": [(one["processes"], one["words_per_s"]) for one in figures[:-1]]}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--warmup", type=float, default=5)
    args = parser.parse_args()
    print(json.dumps(run(args.seconds, args.warmup, tuple(args.processes))))


if __name__ == "__main__":
    main()
