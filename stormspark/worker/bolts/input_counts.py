"""What a bolt's task counts by input, if the bolt reads several streams (J11)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from operator import itemgetter

from stormspark.api import TupleSource
from stormspark.api.streams import SYSTEM_COMPONENT
from stormspark.metrics.streams import StreamCounts, merged_streams
from stormspark.worker.tuples.outlets import Delivery

__all__ = ["InputCounts"]

_source = itemgetter(1)


class InputCounts:
    """The counts of one task. They are kept by source, which is one stream of one task, because all tuples of a source share one
    object. The collector adds to `acked` itself.
    """

    def __init__(self) -> None:
        self.executed: defaultdict[TupleSource, int] = defaultdict(int)
        self.acked: defaultdict[TupleSource, int] = defaultdict(int)
        self.failed: defaultdict[TupleSource, int] = defaultdict(int)
        self.seconds: defaultdict[TupleSource, float] = defaultdict(float)
        self.processed: defaultdict[TupleSource, int] = defaultdict(int)
        self.process_seconds: defaultdict[TupleSource, float] = defaultdict(float)
        #: The calls that have ended, of an async bolt. Those of other bolts end when they count as executed.
        self.ended: defaultdict[TupleSource, int] | None = None

    def add(self, deliveries: Sequence[Delivery], took: float, *, acked: bool) -> None:
        """Add executed tuples, which took ``took`` seconds each. ``acked`` is whether the return of execute acks a tuple."""
        for source, count in Counter(map(_source, deliveries)).items():
            self.add_of(source, count, took, acked=acked)

    def add_of(self, source: TupleSource, count: int, took: float, *, acked: bool) -> None:
        """Add ``count`` executed tuples of one source. See `add`."""
        self.executed[source] += count
        self.seconds[source] += count * took
        if acked:
            self.acked[source] += count

    def end(self, source: TupleSource, took: float) -> None:
        """Add the end of a call of an async bolt."""
        if self.ended is None:
            self.ended = defaultdict(int)
        self.ended[source] += 1
        self.seconds[source] += took

    def read(self) -> dict[tuple[str, str], StreamCounts]:
        """Return the totals of each input, by the component and the stream that it comes from. Ticks are left out (J15)."""
        found: dict[tuple[str, str], StreamCounts] = {}
        for source in {**self.executed, **self.acked, **self.failed}:
            if source.component == SYSTEM_COMPONENT:
                continue
            executed = self.executed.get(source, 0)
            counts = StreamCounts(
                executed=executed,
                acked=self.acked.get(source, 0),
                failed=self.failed.get(source, 0),
                calls=executed if self.ended is None else self.ended.get(source, 0),
                call_seconds=self.seconds.get(source, 0.0),
                processed=self.processed.get(source, 0),
                process_seconds=self.process_seconds.get(source, 0.0),
            )
            found = merged_streams(found, {(source.component, source.stream): counts})
        return found
