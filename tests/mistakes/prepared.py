"""Makes a mistake in the working directory, for whoever runs its command."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.mistakes.mistakes import FILES, Mistake
from tests.spark_jars import connector_jars

__all__ = ["full_disk", "prepared"]


def prepared(mistake: Mistake, broker: str = "") -> list[str]:
    """Write the file with the mistake, and what else there is. Return the words of the command after ``stormspark``."""
    text = FILES[mistake.file]
    for before, after in mistake.changes:
        assert before is None or before in text, f"the file has no {before!r}"
        text = text + after if before is None else text.replace(before, after)
    Path(mistake.file).write_text(text.replace("THE_BROKER", broker), encoding="utf-8")
    Path("empty").mkdir()
    if mistake.before is not None:
        mistake.before()
    command = [word.replace("THE_FILE", mistake.file) for word in mistake.command]
    if not any("THE_JARS" in word for word in command):
        return command
    jars = os.pathsep.join(map(str, connector_jars()))
    return [word.replace("THE_JARS", jars) for word in command]


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """A disk without space at ``folder``, for as long as the ``with`` block lasts. Only root can mount it."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "none", str(folder)], check=True)
    try:
        with suppress(OSError), (folder / "full").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
