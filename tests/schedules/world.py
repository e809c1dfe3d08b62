"""What is outside of a run's processes: sinks' destinations, what spouts heard, what must not happen. One run at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import Any, NamedTuple

from tests.schedules.memory_table import Storage
from tests.schedules.schedule import Schedule, ScheduleClock

__all__ = ["Moment", "ViolationError", "World", "begin_world", "world"]


class ViolationError(AssertionError):
    """A promise was broken: ``rule`` names it in few words, the same ones for every schedule that breaks it."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule


class Moment(NamedTuple):
    """One attempt at one batch."""

    generation: int
    attempt: int
    batch: int


class World:
    """Components find it by `world`. They can't raise what is wrong, since the engine would take that for an error of theirs:
    they note it (`broken`), and the engine of the tests looks.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.clock, self.storage = schedule, ScheduleClock(), Storage()
        self.now = Moment(-1, -1, -1)
        self.violation: ViolationError | None = None
        self._nonces = count(1)
        #: What sinks' destinations have, by the delivery's name and number.
        self.delivered: dict[tuple[Hashable, ...], list[Any]] = {}
        #: What a user's own two-phase sink has written and not put in place.
        self.staged: dict[tuple[Hashable, ...], list[Any]] = {}
        self.acked: Counter[Hashable] = Counter()
        self.saved: set[tuple[Hashable, ...]] = set()
        #: Rows whose trees failed, and rows that were given up, by the attempt in which they did.
        self.failed: dict[Moment, set[int]] = defaultdict(set)
        self.gave_up: dict[Moment, set[int]] = defaultdict(set)
        #: The attempt that was committed, by batch.
        self.commits: dict[int, Moment] = {}
        #: Attempts in which a row's tree failed, by driver.
        self.attempts_failed: dict[tuple[int, int], set[Moment]] = defaultdict(set)
        #: Rows that fail each time.
        self.poison: set[int] = set()
        #: Numbers that the spout with a state may have emitted by the end of each batch.
        self.numbers_until: Callable[[int], int] = lambda batch: 0
        self.effects: dict[str, Counter[Any]] = defaultdict(Counter)
        #: Rows that were kept over the end of a batch once: they come at least once.
        self.kept: set[int] = set()
        #: Whose threads never pause.
        self.talks: Any = None
        #: Rows by their message ids.
        self.row_of: dict[Hashable, int] = {}
        #: Committers' acts: what was written down for a transaction, by its number.
        self.acts: dict[int, list[Any]] = {}

    def broken(self, rule: str, what: str) -> None:
        """A promise is broken; the first one counts."""
        if self.violation is None:
            self.violation = ViolationError(rule, f"{what} (at {self.schedule.place})")

    def check(self) -> None:
        """Raise what is broken."""
        if self.violation is not None:
            raise self.violation

    @property
    def committed(self) -> int:
        """The batch that was committed last."""
        return self.storage.last

    def nonce(self) -> int:
        """A number that nobody can draw again: what comes of another attempt has another one."""
        return next(self._nonces)

    def trouble(self, where: str, row: int, what: Hashable = 0) -> int:
        """What goes wrong with a tuple of ``row``; 0: nothing."""
        if row in self.poison and where == "work":
            return 1
        return self.schedule.choose("fail", f"{where} executes {row} {what}", 5)

    def fails(self, row: int) -> None:
        """A bolt has failed a tuple of that row: this attempt can't be committed."""
        self.failed[self.now].add(row)
        self.attempts_failed[self.now.generation, row].add(self.now)

    def ack(self, id: Hashable, batch: int) -> None:
        """A spout hears an ack of what came with ``batch``."""
        self.acked[id] += 1
        if self.acked[id] > 1:
            self.broken("an ack twice", f"message {id!r}")
        if batch > self.committed:
            self.broken(
                "an ack before its commit", f"message {id!r} of batch {batch}, committed is {self.committed}"
            )

    def deliver(self, name: tuple[Hashable, ...], txid: int, parcel: Sequence[Any]) -> None:
        """A destination takes what a batch has for it, once; it may refuse, or take it and not say so. Raises OSError."""
        refuses = self.schedule.choose("store", f"{name[0]} delivers {txid}", 3)
        if refuses == 1:
            raise OSError("the destination is away")
        if txid > self.committed:
            self.broken("outputs of a batch that is not committed", f"{name} of batch {txid}")
        before = self.delivered.setdefault((*name, txid), list(parcel))
        if before != list(parcel):
            self.broken(
                "one delivery with two contents", f"{name} of batch {txid}: {before}, then {list(parcel)}"
            )
        if refuses == 2:
            raise OSError("the destination does not answer")

    def heard_commit(self, name: tuple[Hashable, ...], txid: int) -> None:
        """A component was told that a batch is committed."""
        if txid > self.committed:
            self.broken(
                "post_save before the commit", f"{name} of batch {txid}, committed is {self.committed}"
            )
        if (*name, txid) in self.saved:
            self.broken("post_save twice", f"{name} of batch {txid}")
        self.saved.add((*name, txid))


_worlds: list[World] = []


def world() -> World:
    """That of the run that runs."""
    return _worlds[-1]


def begin_world(schedule: Schedule) -> World:
    """The one before is forgotten."""
    _worlds[:] = [World(schedule)]
    return _worlds[-1]
