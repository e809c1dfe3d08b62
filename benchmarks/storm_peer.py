"""Runs Apache Storm's own word count for comparison; needs the peer's sources, Maven and Java."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.places import ROOT

__all__ = ["PYSTORM", "peer_folder", "peer_sources", "run_storm"]

#: Storm without its idle spin, which on few cores takes the CPU from its own bolts: the fair and faster
#: setting.
TUNED = "-Dstorm.options=topology.bolt.wait.progressive.level2.count=0"

#: The Python that the peer's pystorm lives in, once that case has run.
PYSTORM = Path("target", "venv", "bin", "python")


def peer_sources() -> Path:
    """Where the peer's sources should be: STORM_PEER says so."""
    return Path(os.environ.get("STORM_PEER", ROOT.parent / "shared" / "peers" / "storm"))


def peer_folder() -> Path:
    """A copy of the peer's sources: it builds beside them, and they may not be writable.

    Raises FileNotFoundError where there are none.
    """
    source = peer_sources()
    if not (source / "run.sh").exists():
        msg = f"no Storm peer in {source}: set STORM_PEER to the folder that holds its run.sh"
        raise FileNotFoundError(msg)
    copy = ROOT / "build" / "storm-peer"
    if not copy.exists():
        shutil.copytree(source, copy)
        for path in copy.rglob("*"):
            path.chmod(path.stat().st_mode | 0o200)
        copy.chmod(0o755)
    # Bolts in Python run on the Python that ours run on: how it was built makes them up to a third faster.
    pystorm = copy / PYSTORM
    if pystorm.exists() and pystorm.resolve() != Path(sys.executable).resolve():
        shutil.rmtree(pystorm.parent.parent)
    return copy


def run_storm(
    case: str, seconds: float, warmup: float, *options: str, programs: Path | None = None, tuned: bool = True
) -> dict[str, Any]:
    """Measure tuned Storm in LocalCluster mode, or one with Storm's own settings; returns the peer's JSON.

    ``options`` are more words for its run.sh; it finds programs in the folder ``programs`` first, then our own Python.
    """
    command = [
        str(peer_folder() / "run.sh"),
        case,
        "--duration",
        str(int(seconds)),
        "--warmup",
        str(int(warmup)),
    ]
    command += options
    first = [Path(sys.executable).parent] if programs is None else [programs, Path(sys.executable).parent]
    environment = {
        **os.environ,
        "JAVA_OPTS": TUNED if tuned else "",
        "PATH": os.pathsep.join((*map(str, first), os.environ["PATH"])),
    }
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result
