"""Finds out whether a component's code may wait, which means block: in a sleep, or on a network, a file, a lock or a process.

Executors of such a component need threads of their own (A16). Async components must not block; what does so in their coroutines
is found too.
"""

from stormspark.waiting_code.blocking import blocking_call
from stormspark.waiting_code.declared import WaitsValueError, declared_waits
from stormspark.waiting_code.search import (
    Findings,
    declared_by,
    declares_that_it_computes,
    known_to_wait,
    look_through,
    waiting,
    why_it_may_wait,
)

__all__ = [
    "Findings",
    "WaitsValueError",
    "blocking_call",
    "declared_by",
    "declared_waits",
    "declares_that_it_computes",
    "known_to_wait",
    "look_through",
    "waiting",
    "why_it_may_wait",
]
