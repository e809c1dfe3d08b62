"""The states of a topology, and what may be done in which of them, as Storm's nimbus has it (J2)."""

from __future__ import annotations

from enum import Enum

from stormspark.errors import StatusError

__all__ = ["Action", "Status", "after"]


class Status(Enum):
    """The state of a topology, by Storm's name."""

    ACTIVE = "ACTIVE"
    #: The spouts are deactivated; what is under way goes on.
    INACTIVE = "INACTIVE"
    #: Somebody has killed the topology: its spouts are deactivated, and it ends when its wait is over.
    KILLED = "KILLED"
    #: Its spouts are deactivated, and it is laid out anew when its wait is over.
    REBALANCING = "REBALANCING"


class Action(Enum):
    """What somebody asks a topology to do. The value is the name of the command and of the REST call."""

    ACTIVATE = "activate"
    DEACTIVATE = "deactivate"
    KILL = "kill"
    REBALANCE = "rebalance"


_AFTER = {
    Action.ACTIVATE: Status.ACTIVE,
    Action.DEACTIVATE: Status.INACTIVE,
    Action.KILL: Status.KILLED,
    Action.REBALANCE: Status.REBALANCING,
}
#: What is allowed in the states from which a topology goes on by itself.
_ALLOWED = {Status.KILLED: (Action.KILL,), Status.REBALANCING: (Action.KILL,)}


def after(topology: str, status: Status, action: Action) -> Status:
    """Return the state of a topology after an action. Raises `StatusError` if the action is not allowed in its state.

    To activate an active topology is allowed, and so is to kill a killed one, which then waits anew (J2).

    >>> after("words", Status.INACTIVE, Action.KILL).value
    'KILLED'
    >>> after("words", Status.KILLED, Action.ACTIVATE)
    Traceback (most recent call last):
    stormspark.errors.StatusError: topology 'words' is KILLED: activate is not possible any more, only kill, with another wait
    """
    allowed = _ALLOWED.get(status)
    if allowed is not None and action not in allowed:
        more = "any more, only kill, with another wait" if status is Status.KILLED else "until that is done"
        msg = f"topology {topology!r} is {status.value}: {action.value} is not possible {more}"
        raise StatusError(msg)
    return _AFTER[action]
