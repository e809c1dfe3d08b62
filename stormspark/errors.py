"""The error classes of stormspark, as one tree.

    StormsparkError
    ├── InvalidTopologyError (ValueError)    the topology can't run as it is written     (A2, A10-A14, J5)
    │   └── TopologyAlreadyRunningError      one of this name runs: AlreadyAliveException (A14)
    ├── EmitError (ValueError)               an emit has a wrong stream, width or task   (A12, B9)
    ├── SerializationError (TypeError)       a component or a value can't be pickled     (A2, C8)
    ├── ValueNotHashableError (TypeError)    a fields grouping met a value without a stable hash (D2)
    ├── ComponentError                       user code raised, and this stops the topology (W22)
    ├── WorkerLostError                      a worker process died inside a batch
    ├── CheckpointError                      a checkpoint folder can't be used, read or written
    │   └── FencedError                      another driver has taken over this checkpoint
    ├── StatusError (RuntimeError)           a topology can't do this in its state: it is killed already  (J2)
    ├── StateError (RuntimeError)            state can't be changed as asked: a txid out of order (G15, C35)
    ├── UnavailableError                     storage, a broker or a destination can't be reached; the batch is tried again
    ├── UnsupportedEnvironmentError          stormspark can't run with this Java, Spark or session, or a package is missing
    ├── MultilangError                       a child process died, hung, or violated Storm's multilang protocol (I12)
    ├── FailedException                      raised BY users: fails the tuple, nothing else (C5)
    │   └── ReportedFailedException          the same, and reported as an error
    ├── TopologyNotAliveError (LookupError)  no topology of that name runs: NotAliveException  (A14, J5)
    ├── TopologyNotCompleteError (TimeoutError)  complete_topology gave up: a spout still emits, or work is left (J25)
    └── TopologyNotFoundError (LookupError)  FILE[:NAME] does not give a topology

A message names the component, the task, the stream and the line of the user's file, as far as these are known. The message also
says what was expected, what came, and what to do next.
"""

from __future__ import annotations

__all__ = [
    "CheckpointError",
    "ComponentError",
    "EmitError",
    "FailedException",
    "FencedError",
    "InvalidTopologyError",
    "MultilangError",
    "ReportedFailedException",
    "SerializationError",
    "StateError",
    "StatusError",
    "StormsparkError",
    "TopologyAlreadyRunningError",
    "TopologyNotAliveError",
    "TopologyNotCompleteError",
    "TopologyNotFoundError",
    "UnavailableError",
    "UnsupportedEnvironmentError",
    "ValueNotHashableError",
    "WorkerLostError",
]


class StormsparkError(Exception):
    """The root of every error of this package."""


class InvalidTopologyError(StormsparkError, ValueError):
    """The topology can't run as it is written: Storm's InvalidTopologyException and IllegalArgumentException
    (J5, A2).
    """


class TopologyAlreadyRunningError(InvalidTopologyError):
    """A topology of this name runs already: Storm's AlreadyAliveException (A14)."""


class EmitError(StormsparkError, ValueError):
    """An emit names an unknown stream or task, brings a wrong number of values, or is not allowed now (A12, B9)."""

    #: Whether the task has reported the error when it was raised, as it does if the emit of a coroutine comes too late.
    is_reported = False


class SerializationError(StormsparkError, TypeError):
    """A component or a value of a tuple can't be pickled, so it can't go to a worker (A2, C8)."""


class ValueNotHashableError(StormsparkError, TypeError):
    """A fields grouping met a value whose hash differs between processes (D2)."""


class ComponentError(StormsparkError):
    """User code raised, and this stops the topology. The error has the user's traceback or message (W22).

    A spout or bolt raised in ``open`` or ``prepare`` or too many times in a row, or a worker hook, a custom grouping or a source
    raised.
    """


class WorkerLostError(StormsparkError):
    """A worker process died, or was replaced, while a batch ran. The batch runs again in the next attempt."""


class CheckpointError(StormsparkError):
    """A checkpoint folder belongs to another topology, can't be read or written, or lacks the batch that was asked for."""


class FencedError(CheckpointError):
    """Another driver has taken over this checkpoint. This driver may write nothing more, and stops."""


class StatusError(StormsparkError, RuntimeError):
    """A topology can't do what it is asked to in its state, such as be activated when it was killed (J2)."""


class StateError(StormsparkError, RuntimeError):
    """State can't be read or changed as asked, because a batch is older than the stored one, or another transaction is prepared
    (G15, C35).
    """


class UnsupportedEnvironmentError(StormsparkError):
    """Java, Spark or the kind of Spark session is not one that stormspark runs on, or a package is missing."""


class TopologyNotAliveError(StormsparkError, LookupError):
    """No topology of this name runs: Storm's NotAliveException (A14, J5)."""


class TopologyNotCompleteError(StormsparkError, TimeoutError):
    """`stormspark.testing.complete_topology` gave up, because a spout still emits or work is left (J25)."""


class TopologyNotFoundError(StormsparkError, LookupError):
    """``FILE[:NAME]`` names a file or an object that does not exist, or an object that gives no topology."""


class MultilangError(StormsparkError):
    """A child process of Storm's multilang protocol did not start, died, hung, or violated the protocol (I12)."""


class UnavailableError(StormsparkError):
    """Something outside of the topology can't be reached for now, such as the destination of a sink.

    If this error is raised while a batch is prepared, the batch runs again. Attempts go on for at most
    ``stormspark.outage.timeout.secs``.
    """


class FailedException(StormsparkError):  # noqa: N818 - Storm's own name
    """An exception for users to raise in a bolt: it fails the current tuple without restarting the task (C5).

    >>> from stormspark import BasicBolt
    >>> class Parse(BasicBolt):
    ...     def execute(self, tup, collector):
    ...         if not tup["line"].isdigit():
    ...             raise FailedException(f"not a number: {tup['line']!r}")
    """


class ReportedFailedException(FailedException):
    """Like `FailedException`, but the reason is also reported as an error of the component (C5)."""
