"""``petrel.mock``: runs a chain of components in users' own tests, without an engine."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stormspark.compat.petrel import storm

__all__ = ["LIST", "NAMEDTUPLE", "STORM_TUPLE", "TUPLE", "Mock", "MockSpout", "run_simple_topology"]

#: The forms in which `run_simple_topology` returns tuples.
STORM_TUPLE, LIST, TUPLE, NAMEDTUPLE = range(4)


class MockSpout(storm.Spout):
    """A spout that emits given tuples."""

    def __init__(self, output_fields: Sequence[str], data: Sequence[Sequence[Any]]) -> None:
        self.output_fields = output_fields
        self.data = data
        self.index = 0

    def declareOutputFields(self) -> Sequence[str]:  # noqa: N802
        """Return the names of the fields."""
        return self.output_fields

    def nextTuple(self) -> None:  # noqa: N802
        """Emit the next tuple, if there is one."""
        if self.index < len(self.data):
            storm.emit(self.data[self.index])
            self.index += 1


class _Recorder:
    """Keeps what one component emits."""

    def __init__(self) -> None:
        self.emitted: list[storm.Tuple] = []

    def emit(self, tup: Sequence[Any], stream: str | None = None, *_: Any, **given: Any) -> None:
        """Keep a tuple."""
        self.emitted.append(storm.Tuple(given.get("id"), None, stream, given.get("directTask"), list(tup)))

    def ack(self, tup: Any) -> None:
        """Do nothing."""

    fail = report_error = log = ack


class Mock:
    """Runs a spout and the bolts behind it, one after the other."""

    @classmethod
    def run_simple_topology(
        cls,
        config: Mapping[str, Any] | None,
        emitters: Sequence[Any],
        result_type: int = NAMEDTUPLE,
        max_spout_emits: int | None = None,
    ) -> dict[Any, list[Any]]:
        """Return, for each of ``emitters``, the tuples that it emits.

        The first is the spout, and each other takes the tuples of the one before.

        The spout is called until it emits nothing, or has emitted ``max_spout_emits`` tuples. Without ``config``, the components
        are not initialized.

        >>> from stormspark.compat.petrel.emitter import BasicBolt
        >>> class Split(BasicBolt):
        ...     def declareOutputFields(self): return ["word"]
        ...     def process(self, tup):
        ...         for word in tup.values[0].split():
        ...             storm.emit([word])
        >>> split = Split("split.py")
        >>> run_simple_topology({}, [MockSpout(["line"], [["a b"]]), split], LIST)[split]
        [['a'], ['b']]
        """
        results: dict[Any, list[Any]] = {}
        before: Iterable[storm.Tuple] = ()
        try:
            for place, emitter in enumerate(emitters):
                recorder = _Recorder()
                storm.being_called(recorder)
                if config is not None:
                    emitter.initialize(config, {})
                if place == 0:
                    last = -1
                    while last < len(recorder.emitted) and (
                        max_spout_emits is None or len(recorder.emitted) < max_spout_emits
                    ):
                        last = len(recorder.emitted)
                        emitter.nextTuple()
                for tup in before:
                    emitter.process(tup)
                before = recorder.emitted
                results[emitter] = _as(result_type, recorder.emitted, emitter)
        finally:
            storm.being_called(None)
        return results


def _as(result_type: int, tuples: list[storm.Tuple], emitter: Any) -> list[Any]:
    if result_type == STORM_TUPLE:
        return list(tuples)
    if result_type == LIST:
        return [list(tup.values) for tup in tuples]
    if result_type == TUPLE:
        return [tuple(tup.values) for tup in tuples]
    named: Any = namedtuple(f"{type(emitter).__name__}Tuple", emitter.declareOutputFields() or ())  # type: ignore[misc]
    return [named(*tup.values) for tup in tuples]


run_simple_topology = Mock.run_simple_topology
