"""Runs of schedules, one after another; one that breaks a promise is made as simple as it gets.

``python -m tests.schedules`` searches (see `tests.schedules.__main__`).
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tests.schedules.at_least_once import run as run_at_least_once
from tests.schedules.exactly_once import run as run_exactly_once
from tests.schedules.exactly_once import run_with_kept
from tests.schedules.schedule import Schedule
from tests.schedules.transactional import run as run_transactional
from tests.schedules.world import ViolationError, begin_world

__all__ = ["FAMILIES", "Found", "search", "simplest", "try_schedule"]

#: What can be searched: a run of one schedule, in the world that has begun, that raises `ViolationError`.
FAMILIES: Mapping[str, Callable[[Schedule], None]] = {
    "exactly-once": run_exactly_once,
    "kept": run_with_kept,
    "transactional": run_transactional,
    "at-least-once": run_at_least_once,
}


@dataclass(frozen=True)
class Found:
    """A schedule that breaks a promise."""

    family: str
    seed: int | None
    choices: Mapping[str, int]
    rule: str
    what: str

    def __str__(self) -> str:
        import json

        lines = "\n".join(f"    {name} = {value}" for name, value in self.choices.items()) or "    (nothing)"
        origin = "" if self.seed is None else f"seed {self.seed} of "
        return (
            f"{origin}{self.family}: {self.what}\n  what it takes:\n{lines}\n"
            f"  again: python -m tests.schedules {self.family} --schedule '{json.dumps(dict(self.choices))}'"
        )


def try_schedule(family: str, schedule: Schedule, seed: int | None = None) -> Found | None:
    """Run one schedule; what it breaks, or None."""
    begin_world(schedule)
    try:
        FAMILIES[family](schedule)
    except ViolationError as error:
        return Found(family, seed, dict(schedule.choices), error.rule, str(error))
    except Exception as error:
        text = "".join(traceback.format_exception(error)[-3:])
        rule = f"{type(error).__name__} at {_line_of(error)}"
        return Found(family, seed, dict(schedule.choices), rule, f"{rule}: {text} (at {schedule.place})")
    return None


def _line_of(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].name}" if frames else "?"


def search(family: str, seeds: Iterable[int]) -> Found | None:
    """The first of these seeds that breaks a promise, or None."""
    for seed in seeds:
        if (found := try_schedule(family, Schedule(seed), seed)) is not None:
            return found
    return None


def simplest(found: Found, most_tries: int = 2000) -> Found:
    """The same broken promise, with as few choices as greed gets it down to."""
    best, tries = found, 0

    def still(choices: Mapping[str, int]) -> bool:
        nonlocal best, tries
        tries += 1
        again = try_schedule(found.family, Schedule(0, choices), found.seed)
        if again is not None and again.rule == found.rule and _size(again.choices) < _size(best.choices):
            best = again
            return True
        return False

    size = max(1, len(best.choices) // 2)
    while tries < most_tries:
        smaller = False
        names = list(best.choices)
        for begin in range(0, len(names), size):
            some = set(names[begin : begin + size])
            if some & best.choices.keys() and still({n: v for n, v in best.choices.items() if n not in some}):
                smaller = True
            if tries >= most_tries:
                return best
        if size > 1:
            size = max(1, size // 2)
        elif not smaller:
            break
    for name in list(best.choices):
        for value in (1, best.choices.get(name, 1) // 2, best.choices.get(name, 1) - 1):
            if 0 < value < best.choices.get(name, 0):
                still({**best.choices, name: value})
    return best


def _size(choices: Mapping[str, int]) -> tuple[int, int]:
    return len(choices), sum(Counter(choices).values())
