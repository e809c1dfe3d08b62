"""W10, J25: tests of one component without any engine."""

from __future__ import annotations

from typing import Any

import pytest

from stormspark import BasicBolt, Bolt, FailedException, Fields, ReportedFailedException, Spout
from stormspark.acker import Outcome
from stormspark.errors import EmitError
from stormspark.metrics import CountMetric
from stormspark.testing import (
    Emitted,
    RecordingBasicCollector,
    RecordingCollector,
    RecordingSpoutCollector,
    make_context,
    make_tuple,
    multiseteq,
    test_tuple,
)


class Declares:
    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("a", "b"))
        declarer.declare_stream("one", Fields("n"))
        declarer.declare_stream("direct", Fields("n"), direct=True)


class AnyBolt(Declares, Bolt):
    def execute(self, tup):
        pass


class AnySpout(Declares, Spout):
    heard: list[Any]

    def open(self, conf, context, collector):
        self.collector = collector
        self.heard = []

    def next_tuple(self):
        pass

    def ack(self, message_id):
        self.heard.append((message_id, self.collector.verdict.outcome))

    def fail(self, message_id):
        self.heard.append((message_id, self.collector.verdict.outcome, self.collector.verdict.reason))


class Parse(Declares, BasicBolt):
    def execute(self, tup, collector):
        if tup[0] == "bad":
            raise FailedException(tup[0])
        if tup[0] == "worse":
            raise ReportedFailedException(tup[0])
        collector.reset_timeout()
        collector.emit((int(tup[0]),), "one")
        collector.emit_direct(7, [int(tup[0])], "direct")


def every_collector() -> list[Any]:
    return [
        RecordingCollector(AnyBolt()),
        RecordingBasicCollector(Parse()),
        RecordingSpoutCollector(AnySpout()),
    ]


@pytest.mark.parametrize("collector", every_collector(), ids=lambda c: type(c).__name__)
def test_the_rules_for_emits_are_those_of_the_engine(collector):
    """The recording collectors reject wrong emits as the engine does, and record only correct ones (A12, B9, D11)."""
    collector.emit([1, 2])
    assert collector.emitted == [Emitted((1, 2))]
    for emit, says in [
        (lambda: collector.emit((1, 2, 3)), r"wrong number of fields: expected 2 \(a, b\), got 3"),
        (lambda: collector.emit("ab"), "emit takes a tuple or list of values, got 'ab'"),
        (
            lambda: collector.emit((1,), "two"),
            r"Unknown stream ID 'two'; it declares 'default', 'one', 'direct'",
        ),
        (lambda: collector.emit((1,), "direct"), "Cannot do regular emit to direct stream 'direct'"),
        (
            lambda: collector.emit_direct(3, (1,), "one"),
            "emit_direct on stream 'one', which is not declared direct",
        ),
    ]:
        with pytest.raises(EmitError, match=says):
            emit()
    assert len(collector.emitted) == 1
    collector.report_error("oh")
    collector.flush()
    assert collector.errors == ["oh"]
    collector.clear()
    assert (collector.emitted, collector.errors) == ([], [])


def test_a_bolts_anchors_acks_and_fails_are_recorded():
    """A recording collector keeps emits with their anchors, acks, fails with their reasons, and resets (C2, E4, E5)."""
    collector = RecordingCollector(AnyBolt(), receivers=[4, 5])
    first, second = make_tuple((1,)), make_tuple((2,))
    assert collector.emit((1,), "one", anchors=[first, second]) == [4, 5]
    collector.emit_direct(9, (1,), "direct", anchors=first)
    collector.emit((1, 2))
    assert [(e.stream, e.anchors, e.task) for e in collector.emitted] == [
        ("one", (first, second), None),
        ("direct", (first,), 9),
        ("default", (), None),
    ]
    collector.reset_timeout(first)
    collector.ack(first)
    collector.fail(second, "too late")
    assert (collector.acked, collector.failed, collector.reasons) == ([first], [second], ["too late"])
    assert collector.resets == [first]


def test_a_second_ack_and_an_anchor_that_is_settled_fail_the_test():
    """A second verdict for a tuple, and an anchor that has its verdict, are errors (E14, I12)."""
    collector = RecordingCollector(AnyBolt())
    acked, failed = make_tuple((1,)), make_tuple((2,))
    collector.ack(acked)
    collector.fail(failed)
    with pytest.raises(AssertionError, match="has acked or failed already"):
        collector.fail(acked)
    with pytest.raises(AssertionError, match="has acked or failed already"):
        collector.ack(failed)
    with pytest.raises(EmitError, match="after its ack or fail"):
        collector.emit((1, 2), anchors=[acked])


def test_a_basic_bolt_acks_and_fails_as_on_the_engine():
    """A basic bolt's tuple is acked, failed or its error raised as on the engine (C5)."""
    bolt = Parse()
    collector = RecordingBasicCollector(bolt)
    good, bad, worse = (make_tuple((text,)) for text in ("3", "bad", "worse"))
    for tup in (good, bad, worse):
        collector.execute(bolt, tup)
    assert (collector.acked, collector.failed) == ([good], [bad, worse])
    assert collector.emitted == [
        Emitted((3,), "one", (good,)),
        Emitted((3,), "direct", (good,), task=7),
    ]
    assert [str(error) for error in collector.errors] == ["worse"]
    assert collector.resets == [good]
    with pytest.raises(ValueError, match="invalid literal"):
        collector.execute(bolt, make_tuple(("x",)))


def test_a_spout_hears_verdicts_of_what_is_pending_only():
    """A test can give verdicts only for messages that are pending (B5, B6, W4)."""
    spout = AnySpout()
    collector = RecordingSpoutCollector(spout)
    spout.open({}, make_context("spout", spout), collector)
    collector.emit((1, 2), message_id="m")
    collector.emit((1, 2), message_id="m")
    collector.emit((1, 2))
    collector.emit_direct(3, (1,), "direct", message_id="n")
    assert (collector.pending, collector.pending_count) == (["m", "m", "n"], 3)
    collector.ack(spout, "m")
    collector.fail(spout, "n", "no reason")
    collector.fail(spout, "m", outcome=Outcome.TIMED_OUT)
    assert spout.heard == [
        ("m", Outcome.ACKED),
        ("n", Outcome.FAILED, "no reason"),
        ("m", Outcome.TIMED_OUT, None),
    ]
    assert collector.verdict is None
    with pytest.raises(AssertionError, match="has nothing pending with message id 'm'"):
        collector.ack(spout, "m")


def test_a_group_of_emits_is_pending_once():
    """A group of emits is one pending message, and takes no emit after its end (X68)."""
    collector = RecordingSpoutCollector(AnySpout())
    with collector.group("order") as group:
        group.emit((1,), "one")
        group.emit_direct(3, (2,), "direct")
    assert collector.pending == ["order"]
    assert [(e.values, e.message_id, e.task) for e in collector.emitted] == [
        ((1,), "order", None),
        ((2,), "order", 3),
    ]
    with pytest.raises(EmitError, match="the group of message 'order' is not open"):
        group.emit((1,), "one")


def test_a_context_has_the_tasks_ids_and_a_clock_that_the_test_drives():
    """A context made for tests has ids, fields and metrics, and timers that the test drives (A26-A29, J18, C9)."""
    bolt = AnyBolt()
    context = make_context("count", bolt, parallelism=3, index=1)
    assert (context.this_component_id, context.this_task_id, context.this_task_index) == ("count", 2, 1)
    assert context.component_tasks("count") == [1, 2, 3]
    assert context.output_fields(stream="one") == Fields("n")
    fired: list[tuple[str, int]] = []
    context.set_timer(2, lambda: fired.append(("two", context.now_ms())))
    context.set_timer(3, lambda: fired.append(("three", context.now_ms())))
    context.set_timer(2.5, lambda: fired.append(("one", context.now_ms())), first=1)
    context.advance_time(5)
    assert fired == [("one", 1000), ("two", 2000), ("three", 3000), ("one", 3500), ("two", 4000)]
    assert context.now_ms() == 5000
    count = context.register_metric("seen", CountMetric())
    count.incr()
    assert context.metrics == {"seen": count}
    assert context.shared_executor.submit(lambda x: x + 1, 1).result() == 2
    with pytest.raises(ZeroDivisionError):
        context.shared_executor.submit(lambda: 1 / 0).result()
    with pytest.raises(ValueError, match=r"index must be one of 0..2"):
        make_context("count", parallelism=3, index=3)


def test_a_made_tuple_is_a_real_one():
    """J25, C6: Storm's testTuple and its defaults."""
    tup = make_tuple(["a", 1], component="words", stream="s", fields=["word", "n"], task=4)
    assert (tup["n"], tup.values, tup.source_component, tup.source_stream, tup.source_task) == (
        1,
        ("a", 1),
        "words",
        "s",
        4,
    )
    plain = test_tuple(("a", 1))
    assert (list(plain.fields), plain.source_component, plain.source_stream, plain.source_task) == (
        ["field1", "field2"],
        "component",
        "default",
        1,
    )
    with pytest.raises(EmitError, match=r"expected 1 \(word\), got 2"):
        make_tuple((1, 2), fields=["word"])


def test_multisets_are_equal_whatever_the_order_and_the_elements():
    """J25: Storm's multiseteq."""
    assert multiseteq([{"a": 1}, {"b": 2}, {"a": 1}], iter([{"b": 2}, {"a": 1}, {"a": 1}]))
    assert not multiseteq([1, 1, 2], [1, 2, 2])
    assert not multiseteq([1], [1, 1])
