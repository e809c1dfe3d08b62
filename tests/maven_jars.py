"""Java archives for tests, by Maven: fetched once, kept in a cache folder of our own.

The folder is not Maven's usual one, because poms without jars that other programs left there make Spark's own
resolver fail. Where Maven fetches from is the machine's business (its ``settings.xml``), so no host is named here.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

__all__ = ["cache_folder", "maven_jars"]

_POMS = Path(__file__).parent / "maven"
_PATIENCE_SECS = 600


def cache_folder() -> Path:
    """Where this user keeps what tests have fetched."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base, "stormspark")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def maven_jars(name: str, **versions: str) -> list[Path]:
    """The jars that ``tests/maven/<name>.xml`` asks for, with all that these depend on, in class path order.

    ``versions`` are put into the file in the place of ``@name@``.

    Raises `RuntimeError`, with what to do, where Maven is missing or can't fetch them.
    """
    text = (_POMS / f"{name}.xml").read_text()
    for what, version in versions.items():
        text = text.replace(f"@{what}@", version)
    cache = cache_folder()
    # The pom's content is the key: a changed version is fetched, an unchanged one costs no start of Maven.
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    pom = cache / f"{name}-{digest}.xml"
    known = cache / f"{name}-{digest}.classpath"
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs must not fill one Maven repository at once
        if known.exists():
            jars = _split(known)
            if all(jar.exists() for jar in jars):
                return jars
        pom.write_text(text)
        fetched = known.with_suffix(".new")
        _run_maven(pom, cache / "maven", fetched)
        fetched.replace(known)
        return _split(known)


def _split(class_path: Path) -> list[Path]:
    return [Path(jar) for jar in class_path.read_text().strip().split(os.pathsep)]


def _run_maven(pom: Path, repository: Path, output: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        msg = f"Maven fetches the jars of {pom.name} and is not on the PATH: apt-get install maven"
        raise RuntimeError(msg)
    command = [maven, "-B", "-q", "-f", str(pom), f"-Dmaven.repo.local={repository}"]
    command += ["dependency:build-classpath", f"-Dmdep.outputFile={output}"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_SECS, check=False)
    if ran.returncode != 0:
        why = [line for line in ran.stdout.splitlines() if line.startswith("[ERROR]")] or [ran.stderr]
        msg = f"Maven could not fetch the jars of {pom.name}: {why[0][:500]}"
        raise RuntimeError(msg)
