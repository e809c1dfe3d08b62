"""A schedule: everything that may come this way or that, decided by a seed, written down, and decided again from that."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from random import Random

from stormspark.local import SimulatedClock

__all__ = ["KINDS", "Schedule", "ScheduleClock"]

#: What a schedule can do to a run. A seed takes some of these kinds and leaves the others alone: what only comes together with
#: nothing else is found as well as what needs company.
KINDS = (
    "shape",  # of the topology and of its rows: always there
    "cut",  # deadlines and quanta that end between two tuples
    "fail",  # bolts that fail, or raise
    "send",  # values that can't be sent to another worker, or not be read there
    "callback",  # code of users that hears of a commit, and raises
    "lose",  # workers, the driver or a round
    "barrier",  # the same at the steps of the commit's protocol
    "repeat",  # Spark asks again
    "limit",  # what spouts may emit in a round; batches that are prolonged
    "store",  # the state table, the acker's table, or a sink's destination refuses
    "order",  # of what Spark promises no order
    "deactivate",  # the topology, for some requests
    "end",  # the topology is stopped, and started again
)
#: How often: in one superstep, of one tuple, or at one step of the protocol.
_CHANCES = (0.02, 0.06, 0.2)
#: How many kinds a seed takes: one or two, mostly, for where everything happens no batch gets as far as its commit.
_HOW_MANY = (1, 1, 2, 2, 2, 3, 3, 9)


class Schedule:
    """Made of a ``seed``, or of ``choices`` that another one has written down (`choices`).

    Every choice has a name that says where it is made, and 0 is always what happens when nothing happens. So a schedule is its
    choices that are not 0, and one with fewer of them is a simpler one.

    >>> drawn = Schedule(3)
    >>> taken = [drawn.choose("shape", f"size {n}", 4) for n in range(3)]
    >>> taken == [Schedule(0, drawn.choices).choose("shape", f"size {n}", 4) for n in range(3)]
    True
    """

    def __init__(self, seed: int = 0, choices: Mapping[str, int] | None = None) -> None:
        self._given = choices
        self._random = Random(seed)
        mood = Random(~seed)
        able = [kind for kind in KINDS if kind != "shape"]
        taken = mood.sample(able, mood.choice(_HOW_MANY))
        if mood.random() < 0.5:  # of work that is cut all else is more likely to go wrong
            taken.append("cut")
        self._chances = {kind: mood.choice(_CHANCES) if kind in taken else 0.0 for kind in able}
        self._seen: Counter[str] = Counter()
        #: What was not 0, by name.
        self.choices: dict[str, int] = {}
        #: How many options there were, by name; for whoever enumerates.
        self.options: dict[str, int] = {}
        #: Where the run is; it becomes a part of names.
        self.place = ""
        #: Requests for which something has just happened: trouble seldom comes alone, and what a deadline has left over is
        #: executed when nobody expects it.
        self.hot = 0
        #: From now on nothing happens any more.
        self.calm = False

    def choose(self, kind: str, what: str, options: int, *, scale: float = 1.0) -> int:
        """One of so many options, 0 most of the time; of a ``shape`` each is as likely."""
        name = what if kind == "shape" else f"{self.place}: {what}"
        self._seen[name] += 1
        if self._seen[name] > 1:
            name += f" #{self._seen[name]}"
        if self.calm:
            return 0
        self.options[name] = options
        if self._given is not None:
            chosen = min(self._given.get(name, 0), options - 1)
        elif kind == "shape":
            chosen = self._random.randrange(options)
        elif self._random.random() < self._chance(kind) * scale:
            chosen = self._random.randrange(1, options)
        else:
            chosen = 0
        if chosen:
            self.choices[name] = chosen
        return chosen

    def _chance(self, kind: str) -> float:
        chance = self._chances[kind]
        if kind == "cut":
            return (
                0.4 if self.hot and chance else 2 * chance
            )  # who is slow stays slow, and nothing begins anew by that
        return min(0.5, max(0.05, 4 * chance)) if self.hot else chance

    def __str__(self) -> str:
        return json.dumps(self.choices)


class ScheduleClock(SimulatedClock):
    """Stands still, but for one leap in a superstep where the schedule wants one: at the ``looks``-th look from now on."""

    def __init__(self) -> None:
        super().__init__()
        self._looks, self._leap = 0, 0.0

    def leap(self, looks: int, seconds: float) -> None:
        """Leap by so much then; 0 looks: never."""
        self._looks, self._leap = looks, seconds

    @property
    def leaps(self) -> bool:
        """Whether the leap is still to come."""
        return self._looks > 0

    def __call__(self) -> float:
        if self._looks:
            self._looks -= 1
            if not self._looks:
                self._seconds += self._leap
        return self._seconds
