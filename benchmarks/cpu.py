"""CPU seconds of a run: this process, worker processes, which have sessions of their own, and the children of both."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Container
from pathlib import Path

import psutil

__all__ = ["CpuMeter", "busy_cores", "cpu_by_kind", "machine", "machine_busy", "worker_processes"]


class CpuMeter:
    """Adds up the CPU time of every process that belongs to a run; a process that ended keeps its last
    reading. With ``topology``, workers of others are not counted.
    """

    def __init__(self, topology: str | None = None) -> None:
        self._topology = topology
        self._seen: dict[tuple[int, float], tuple[str, float]] = {}

    def read(self) -> dict[str, float]:
        """CPU seconds so far, by ``jvm`` and ``python``."""
        me = psutil.Process()
        processes = [me, *me.children(recursive=True)]
        for process in psutil.process_iter(["cmdline", "create_time"]):
            line = process.info["cmdline"] or []
            ours = self._topology is None or self._topology in line
            if "stormspark.worker" in line and ours and process.info["create_time"] >= me.create_time():
                processes += [process, *_children(process)]
        for process in set(processes):
            try:
                times = process.cpu_times()
                kind = "jvm" if process.name() == "java" else "python"
                self._seen[process.pid, process.create_time()] = (kind, times.user + times.system)
            except psutil.Error:
                continue
        total = {"jvm": 0.0, "python": 0.0}
        for kind, seconds in self._seen.values():
            total[kind] += seconds
        return total


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def cpu_by_kind(others: Container[int | None]) -> dict[str, float]:
    """CPU seconds so far: of this process, of its JVM, of the executors' JVMs, of Spark's Python processes. Those with an id in
    ``others`` don't count.
    """
    me = psutil.Process()
    kinds = {
        "driver_python": sum(me.cpu_times()[:2]),
        "driver_jvm": 0.0,
        "executor_jvms": 0.0,
        "spark_python": 0.0,
    }
    for process in me.children(recursive=True):
        try:
            if process.pid in others:
                continue
            name, seconds = process.name(), sum(process.cpu_times()[:4])
            if name == "java":
                command = process.cmdline()
                kind = "executor_jvms" if any("CoarseGrained" in word for word in command) else "driver_jvm"
                seconds = sum(process.cpu_times()[:2])
            elif name.startswith("python"):
                kind, seconds = "spark_python", sum(process.cpu_times()[:2])
            else:
                continue
            kinds[kind] += seconds
        except psutil.Error:
            continue
    return kinds


def worker_processes(topology: str) -> list[psutil.Process]:
    """The processes of a topology's workers on Spark."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if "stormspark.worker" in line and topology in line:
            found.append(process)
    return found


def machine_busy() -> float:
    """CPU seconds that all processes of the machine have used."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system)


def busy_cores(seconds: float = 0.5) -> float:
    """How many cores are in use just now."""
    before, began = machine_busy(), time.perf_counter()
    time.sleep(seconds)
    return (machine_busy() - before) / (time.perf_counter() - began)


def machine() -> str:
    """What this runs on, in words."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return f"{os.cpu_count()} cores{', ' + models[0] if models else ''}, Python {platform.python_version()}"
