"""What a worker tells of a call of user code that is under way."""

from __future__ import annotations

from typing import NamedTuple

from stormspark.metrics import LongCall
from stormspark.user_line import CodePlace

__all__ = ["Busy"]


class Busy(NamedTuple):
    """A call of a task's code, which has run in a worker for ``seconds``."""

    task: str
    seconds: float
    #: Whether the call is part of the start of an instance. Such calls are ``open``, ``prepare``, and reads of the instance's
    #: state.
    opens: bool = False
    #: Whether the call holds up only its own executor, because the executor has a thread of its own (B1). In transactions,
    #: calls of bolts and of spouts with state hold up their batch, and so all workers.
    alone: bool = False
    #: Whether the task is a spout's.
    of_spout: bool = False
    #: Whether the call is a coroutine's, and blocks the event loop. Then all coroutines of the worker wait for it.
    on_loop: bool = False
    #: Whether the call is a coroutine's, and awaits something. Then it does not keep the other coroutines from running.
    awaits: bool = False
    #: Whether the call starts an instance anew while all other tasks go on.
    starts_again: bool = False
    #: The function that was called, and the line at which its code is; None if that is not known.
    place: CodePlace | None = None
    #: How many other calls of the same async task are under way. This is the one that has lasted longest.
    others: int = 0
    #: After how many seconds the call of an async bolt was cancelled (``timeout_secs``), which it ignores; 0 if it was not.
    cancelled_after: float = 0.0
    #: If calls have taken all places of an async bolt's task: how many places it has. Otherwise 0.
    all_places: int = 0
    #: If this stands for the work of a child process: how many tuples the child has been given and is not through with, else 0.
    tuples: int = 0

    @property
    def importance(self) -> tuple[bool, bool, float]:
        """The most important call has the smallest value.

        Calls that hold up more than their own executor come first, then calls of bolts, and then those that have lasted longest.
        A spout may wait for ever, and its call must not hide a call of a bolt that does not return.
        """
        return self.alone and not self.on_loop, self.of_spout, -self.seconds

    @property
    def calls(self) -> int:
        """How many calls this stands for. Each tuple that a child has been given counts as one."""
        return max(self.tuples, 1) + self.others

    @property
    def component(self) -> str:
        """The id of the task's component."""
        return self.task.partition("[")[0]

    @property
    def long_call(self) -> LongCall:
        """The call as the statistics have it."""
        return LongCall(self.task, self.code, round(self.seconds, 1), self.others, self.tuples)

    @property
    def code(self) -> str:
        """The code that runs, in words.

        >>> Busy("split[0]", 12.0).code
        'the code of split[0]'
        >>> Busy("split[0]", 12.0, place=CodePlace("execute", "split.py:7")).code
        'execute of split[0] (split.py:7)'
        >>> Busy("split[0]", 12.0, tuples=64).code
        'the child of split[0]'
        """
        if self.tuples:
            return f"the child of {self.task}"
        if self.place is None:
            return f"the code of {self.task}"
        call = self.place.call if self.place.call.isidentifier() else "the code"
        return f"{call} of {self.task} ({self.place.line})"
