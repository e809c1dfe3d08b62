"""Whether a worker sees the folder that its driver means: a path is one folder on hosts that share it, else another on each.

    driver   <folder>/seen-<random>/token           a random text
    worker   <folder>/seen-<random>/<random>        the same text, as it has read it
    driver   reads that, and so both know that what one writes the other reads

A worker that does not see it would write its state where nobody looks for it, and all batches would go well.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import socket
from pathlib import Path

from stormspark.errors import UnsupportedEnvironmentError

__all__ = ["SharedFolder", "show_that_it_is_seen"]

_TOKEN = "token"


class SharedFolder:
    """The driver's side, for one topology; ``folder`` is local, ``otherwise`` says what else than sharing it users may do.

    Raises OSError.

    >>> import tempfile
    >>> shared = SharedFolder(Path(tempfile.mkdtemp()), "do without")
    >>> shared.problem_with(show_that_it_is_seen(shared.place)), shared.problem_with("nothing")
    (None, 'what it has written there the driver does not see')
    >>> shared.close()
    """

    def __init__(self, folder: Path, otherwise: str) -> None:
        self._folder, self._otherwise = folder, otherwise
        self._token = secrets.token_hex(16)
        for left in folder.glob("seen-*"):  # of a driver that was killed
            shutil.rmtree(left, ignore_errors=True)
        self._place = folder / f"seen-{secrets.token_hex(8)}"
        self._place.mkdir(parents=True)
        (self._place / _TOKEN).write_text(self._token)

    @property
    def place(self) -> str:
        """What a worker is told."""
        return str(self._place)

    def problem_with(self, shown: str) -> str | None:
        """What a worker has shown, `show_that_it_is_seen`, says that it does not see the folder: why; else None."""
        try:
            found = (self._place / Path(shown).name).read_text()
        except OSError:
            return "what it has written there the driver does not see"
        return None if found == self._token else "it has read there what the driver has not written"

    def is_away(self) -> bool:
        """Whether the driver itself does not see what it has written there: its storage is away."""
        try:
            return (self._place / _TOKEN).read_text() != self._token
        except OSError:
            return True

    def error(self, who: str, problem: str) -> UnsupportedEnvironmentError:
        """What to say of somebody who does not see it."""
        return UnsupportedEnvironmentError(
            f"{who} does not see the folder {self._folder} of the driver on {socket.gethostname()}, so what it keeps there would "
            f"be lost: {problem}. Give a checkpoint folder that all hosts share, mounted or by a URL, or {self._otherwise}"
        )

    def close(self) -> None:
        """No worker is waited for any more."""
        with contextlib.suppress(OSError):
            shutil.rmtree(self._place)


def show_that_it_is_seen(place: str) -> str:
    """The worker's side: what to tell the driver. Raises OSError where the folder is not seen, or can't be written to."""
    token = Path(place, _TOKEN).read_text()
    shown = Path(place, secrets.token_hex(16))
    shown.write_text(token)
    return shown.name
