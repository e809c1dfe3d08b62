"""How much of a native source one batch may bring: Spark's ``maxOffsetsPerTrigger`` and its like, which are fixed while a query
runs.

A bite that is too large harms little, since its batch is prolonged: rows wait in memory, a failure repeats more, a stop takes
longer. One that is too small costs throughput. A new one costs a restart of the query. So a bite is changed only where it is
wrong by a factor, has been so for some rounds in a row, and not often (`_PAUSE_SECS`):

- too large: batches take `TOO_MANY_ROUNDS` or more until they are worked off. The next ones take `_ROUNDS`: not one, because a
  bolt that is slow for a while is fast again.
- too small: rows come in every batch, as many as the limit lets through, nobody is held, and the busiest bolt works for less
  than a `FACTOR`-th of the target. The next ones let it work for all of it, and are at most `_MOST_GROWTH` times as large.

Nobody tells whether a source has more than it gave. So a source that always gives a little looks as one whose limit is
too small, once: if a larger limit brings no more rows a batch, then it was not the limit (`_full`).

Pure: time is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from stormspark.api import PerTrigger

__all__ = ["FACTOR", "TOO_MANY_ROUNDS", "Bite", "NewLimit", "TriggerLimits"]

#: A bite is changed where it is wrong by this factor.
FACTOR = 4
TOO_MANY_ROUNDS = 16
_ROUNDS = 4
#: So many rounds have to say that it is too large, or too small; a batch that is prolonged has many.
_PATIENCE = {-1: 32, 1: 12}
_PAUSE_SECS = 10.0
_MOST_GROWTH = 16
#: As many rows as a limit lets through, more or less.
_FULL = 0.5


class Bite(NamedTuple):
    """What a batch was for one source."""

    #: Rows that came.
    came: int
    #: How many rounds it took until the topology was not behind with them any more.
    rounds: int
    #: Whether rows are left, or the spout is held: then it does not want more.
    held: bool
    #: Seconds of the busiest task of a bolt, all rounds together.
    busy: float


class NewLimit(NamedTuple):
    """The query is to be started again with it."""

    spout: str
    option: str
    before: int
    after: int
    because: str

    def __str__(self) -> str:
        return f"{self.spout}: {self.option} {self.before} -> {self.after}, because {self.because}"


@dataclass
class _Limit:
    per_trigger: PerTrigger
    units: int
    #: Rows that a unit has brought, at most.
    rows_of_unit: float = 0.0
    #: What batches in a row say: -1 too large, 1 too small; in how many batches and rounds; with how much work.
    says: int = 0
    batches: int = 0
    rounds: int = 0
    busy: float = 0.0

    def forget(self) -> None:
        self.says, self.batches, self.rounds, self.busy = 0, 0, 0, 0.0


class TriggerLimits:
    """For the sources of one topology that have a `PerTrigger`, by spout. ``target`` are seconds.

    >>> limits = TriggerLimits(target=1.0)
    >>> limits.open("orders", PerTrigger("maxOffsetsPerTrigger", 10_000))
    10000
    >>> limits.begin()
    >>> limits.observe({"orders": Bite(10_000, 40, True, 39.0)}, first=True, now=100.0)
    [NewLimit(spout='orders', option='maxOffsetsPerTrigger', before=10000, after=1000, because='a batch took 40 rounds')]
    >>> limits.open("orders", PerTrigger("maxOffsetsPerTrigger", 10_000))
    1000
    """

    def __init__(self, target: float) -> None:
        self._target = target
        self._limits: dict[str, _Limit] = {}
        self._changed_at = float("-inf")
        self._fresh = False

    def open(self, spout: str, per_trigger: PerTrigger) -> int:
        """What the limit of a source is now; to be asked when a query starts."""
        if spout not in self._limits:
            self._limits[spout] = _Limit(per_trigger, per_trigger.first)
        return self._limits[spout].units

    @property
    def units(self) -> Mapping[str, int]:
        """The limits, by spout."""
        return {name: limit.units for name, limit in self._limits.items()}

    def begin(self) -> None:
        """A query starts."""
        self._fresh = True
        for limit in self._limits.values():
            limit.forget()

    def observe(self, batch: Mapping[str, Bite], *, first: bool, now: float) -> list[NewLimit]:
        """A batch is done, the ``first`` one of the checkpoint or a later one: what is to change."""
        # Spark plans a batch before it runs: the first one of a query may have been planned with the limits of the last one.
        skip, self._fresh = self._fresh and not first, False
        if skip:
            return []
        for name, limit in self._limits.items():
            if name in batch:
                self._learn(limit, batch[name])
        if now - self._changed_at < _PAUSE_SECS:
            return []
        wanted = [new for name, limit in self._limits.items() if (new := self._wanted(name, limit))]
        for new in wanted:
            self._limits[new.spout].units = new.after
            self._changed_at = now
        return wanted

    def _learn(self, limit: _Limit, bite: Bite) -> None:
        if not bite.came:
            limit.forget()
            return
        says = self._says(limit, bite)
        if says != limit.says:
            limit.forget()
        limit.says = says
        limit.batches += 1
        limit.rounds += bite.rounds
        limit.busy += bite.busy
        limit.rows_of_unit = max(limit.rows_of_unit, bite.came / limit.units)

    def _says(self, limit: _Limit, bite: Bite) -> int:
        if bite.rounds >= TOO_MANY_ROUNDS:
            return -1
        full = bite.came >= _FULL * limit.rows_of_unit * limit.units
        small = bite.rounds == 1 and not bite.held and bite.busy * FACTOR <= self._target
        return 1 if small and full else 0

    def _wanted(self, name: str, limit: _Limit) -> NewLimit | None:
        if not limit.says or limit.rounds < _PATIENCE[limit.says]:
            return None
        most = limit.per_trigger.most
        if limit.says < 0:
            rounds = limit.rounds / limit.batches
            after, because = limit.units * _ROUNDS / rounds, f"a batch took {rounds:.0f} rounds"
        else:
            busy = limit.busy / limit.rounds
            after = limit.units * min(self._target / max(busy, 1e-9), _MOST_GROWTH)
            because = f"bolts worked for {busy * 1000:.0f} ms a batch"
        units = max(int(after if most is None else min(after, most)), 1)
        if max(units / limit.units, limit.units / units) < FACTOR:
            return None
        limit.forget()
        return NewLimit(name, limit.per_trigger.option, before=limit.units, after=units, because=because)
