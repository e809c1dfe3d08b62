"""Runs topologies on Apache Storm for comparison; needs the peer's sources, Maven and Java."""

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

_SOURCES = Path("src", "main", "java", "peer", "storm")


#: What a peer needs that has no cases whose components wait.
_WAITING = Path(__file__).parent / "storm_waiting.patch"


def peer_sources() -> Path:
    """Where the peer's sources are: STORM_PEER says so. An older peer gets the cases whose components wait, in a copy."""
    given = Path(os.environ.get("STORM_PEER", ROOT.parent / "shared" / "peers" / "storm"))
    bench = given / _SOURCES / "Bench.java"
    if not bench.exists() or (given / _SOURCES / "Waiting.java").exists():
        return given
    patched = ROOT / "build" / "storm-peer-sources"
    patched_from = patched / "Bench.java"
    if not patched_from.exists() or patched_from.read_bytes() != bench.read_bytes():
        shutil.rmtree(patched, ignore_errors=True)
        _bring_up_to_date(patched, given)
        shutil.copyfile(bench, patched_from)
        command = ["patch", "--batch", "-s", "-p1", "-i", str(_WAITING)]
        if subprocess.run(command, cwd=patched, capture_output=True, check=False).returncode:
            shutil.rmtree(patched)
            return given
    return patched


def peer_folder() -> Path:
    """A copy of the peer's sources: it builds beside them, and they may not be writable.

    Raises FileNotFoundError where there are none.
    """
    source = peer_sources()
    if not (source / "run.sh").exists():
        msg = f"no Storm peer in {source}: set STORM_PEER to the folder that holds its run.sh"
        raise FileNotFoundError(msg)
    copy = ROOT / "build" / "storm-peer"
    _bring_up_to_date(copy, source)
    # Bolts in Python run on the Python that ours run on: how it was built makes them up to a third faster.
    pystorm = copy / PYSTORM
    if pystorm.exists() and pystorm.resolve() != Path(sys.executable).resolve():
        shutil.rmtree(pystorm.parent.parent)
    return copy


def _bring_up_to_date(copy: Path, source: Path) -> None:
    """Copy the sources that are new or have changed. The copy's are as old as the copying, so run.sh builds them again."""
    for path in source.rglob("*"):
        name = path.relative_to(source)
        if name.parts[0] == "target" or not path.is_file():
            continue
        theirs = copy / name
        if not theirs.exists() or theirs.read_bytes() != path.read_bytes():
            theirs.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, theirs)
            theirs.chmod(path.stat().st_mode | 0o200)


def run_storm(
    case: str,
    seconds: float,
    warmup: float,
    *options: str,
    programs: Path | None = None,
    tuned: bool = True,
    source: str = "Bench.java",
) -> dict[str, Any]:
    """Measure tuned Storm in LocalCluster mode, or one with Storm's own settings; returns the peer's JSON.

    ``options`` are more words for its run.sh; it finds programs in the folder ``programs`` first, then our own Python.
    ``source`` is the file of the peer that defines the case. Raises FileNotFoundError where the peer does not have it:
    an older peer would run its word count under the name of a case that it does not know.
    """
    folder = peer_folder()
    if not (peer_sources() / _SOURCES / source).exists():
        msg = f"the Storm peer in {peer_sources()} has no {source}, which has the case {case}"
        raise FileNotFoundError(msg)
    command = [
        str(folder / "run.sh"),
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
