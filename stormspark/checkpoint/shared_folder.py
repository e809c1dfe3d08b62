"""Checks that a worker sees the driver's folder. If hosts don't share a folder, the same path is another folder on each host.

    driver   <folder>/seen-<random>/token           writes a random string
    worker   <folder>/seen-<random>/<random>        reads that string, and writes it here
    driver   reads this copy, so each side has read a string that the other side wrote

Without this check, a worker that does not see the folder would write its state where nobody looks for it, and all batches would
seem to succeed.
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
#: A name that nobody else gives to a folder, and that Spark and Hadoop take for no data.
_GUESTS = ".stormspark-doctor-"


class SharedFolder:
    """The driver's side of the check, for one topology.

    ``folder`` is local. ``otherwise`` tells users what to do if the hosts can't share a folder. Raises OSError if the driver
    can't write to the folder.

    The folder is the topology's own, and tokens that a killed driver has left there are removed. With ``as_guest`` it is somebody
    else's, or is not there yet: nothing in it is touched, and `close` removes all that was made.

    >>> import tempfile
    >>> shared = SharedFolder(Path(tempfile.mkdtemp()), "do without")
    >>> shared.problem_with(show_that_it_is_seen(shared.place)), shared.problem_with("nothing")
    (None, 'the driver does not see what was written there')
    >>> shared.close()
    """

    def __init__(self, folder: Path, otherwise: str, *, as_guest: bool = False) -> None:
        self._folder, self._otherwise = folder, otherwise
        self._token = secrets.token_hex(16)
        #: The folders that were not there before, the innermost first.
        self._made: list[Path] = []
        if as_guest:
            self._made = [one for one in (folder, *folder.parents) if not one.exists()]
        else:
            for left in folder.glob("seen-*"):  # a driver that was killed has left this folder
                shutil.rmtree(left, ignore_errors=True)
        self._place = folder / f"{_GUESTS if as_guest else 'seen-'}{secrets.token_hex(8)}"
        try:
            self._place.mkdir(parents=True)
            (self._place / _TOKEN).write_text(self._token)
        except OSError:
            self.close()
            raise

    @property
    def place(self) -> str:
        """The folder in which workers find the token."""
        return str(self._place)

    def problem_with(self, shown: str) -> str | None:
        """Return why a worker does not see the folder; None if it does. ``shown`` is what it got from `show_that_it_is_seen`."""
        try:
            found = (self._place / Path(shown).name).read_text()
        except OSError:
            return "the driver does not see what was written there"
        return None if found == self._token else "what was read there was not written by the driver"

    def is_away(self) -> bool:
        """Whether the driver itself can't read its own token now. If so, the storage can't be reached at present."""
        try:
            return (self._place / _TOKEN).read_text() != self._token
        except OSError:
            return True

    def error(self, process: str, problem: str) -> UnsupportedEnvironmentError:
        """Return the error about a process that does not see the folder. ``process`` names the process."""
        return UnsupportedEnvironmentError(
            f"{process} does not see the folder {self._folder} of the driver on {socket.gethostname()}, so its files there would "
            f"be lost: {problem}. Give a checkpoint folder that all hosts share, mounted or by a URL, or {self._otherwise}"
        )

    def close(self) -> None:
        """Remove the token. From then on, no worker can be checked."""
        with contextlib.suppress(OSError):
            shutil.rmtree(self._place)
        with contextlib.suppress(OSError):  # somebody else may have put something there by now
            for folder in self._made:
                folder.rmdir()


def show_that_it_is_seen(place: str) -> str:
    """Do the worker's side of the check: write a copy of the token, and return the copy's name for the driver.

    Raises OSError if the worker does not see the folder, or can't write to it.
    """
    token = Path(place, _TOKEN).read_text()
    shown = Path(place, secrets.token_hex(16))
    shown.write_text(token)
    return shown.name
