"""C8: `topology.testing.always.try.serialize` finds out inside one worker what would fail between two."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stormspark import BasicBolt, Bolt, Fields, Topology, TopologyBuilder
from stormspark.errors import ComponentError
from stormspark.testing import FixedTupleSpout, complete_topology

TRY: dict[str, Any] = {"topology.testing.always.try.serialize": True}


class Lock(BasicBolt):
    """Emits something that no other process can have, beside something that it can."""

    def execute(self, tup, collector):
        collector.emit((tup[0], threading.Lock()), "locks")

    def declare_output_fields(self, declarer):
        declarer.declare_stream("locks", Fields("n", "lock"))


class LockDirectly(Lock):
    """The same by a direct emit."""

    def prepare(self, conf, context):
        (self.receiver,) = context.component_tasks("keep")

    def execute(self, tup, collector):
        collector.emit_direct(self.receiver, (tup[0], threading.Lock()), "locks")

    def declare_output_fields(self, declarer):
        declarer.declare_stream("locks", Fields("n", "lock"), direct=True)


class Forgetful:
    """Can be pickled, but does not come back as it was."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getstate__(self) -> dict[str, Any]:
        return {"value": None}


class Forget(BasicBolt):
    def execute(self, tup, collector):
        collector.emit((Forgetful(tup[0]),))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("forgetful"))


class Keep(Bolt):
    """Emits what is left of a `Forgetful`."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, tup):
        if isinstance(tup[0], Forgetful):
            self.collector.emit((tup[0].value,), anchors=tup)
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("value"))


def chain(bolt: BasicBolt, stream: str = "default", direct: bool = False) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", FixedTupleSpout([(1,), (2,)], Fields("n")))
    builder.set_bolt("middle", bolt).shuffle_grouping("numbers")
    keep = builder.set_bolt("keep", Keep())
    if direct:
        keep.direct_grouping("middle", stream)
    else:
        keep.shuffle_grouping("middle", stream)
    return builder.create_topology("tried")


def test_inside_a_worker_anything_goes_unless_it_is_tried():
    """Within a worker a value that can't be pickled is delivered, unless serialisation is tried (C8)."""
    done = complete_topology(chain(Lock(), "locks"))
    assert done.statistics.components["keep"].executed == 2


@pytest.mark.parametrize(("bolt", "direct"), [(Lock(), False), (LockDirectly(), True)])
def test_the_error_names_component_task_stream_and_field(bolt, direct):
    """C8: out of the emit, so that the traceback has the user's line."""
    with pytest.raises(ComponentError) as caught:
        complete_topology(
            chain(bolt, "locks", direct), conf={**TRY, "stormspark.task.max.restarts.in.row": 0}
        )
    said = str(caught.value)
    assert (
        "component 'middle', task 3, stream 'locks': field 'lock' holds <unlocked _thread.lock object" in said
        and "of type lock, which can't go to another worker, TypeError" in said
    )
    assert "test_try_serialize.py" in said and "collector.emit" in said


def test_a_tuple_that_can_not_be_sent_leaves_nothing_behind():
    """C8, E24: its input fails at once, and nobody waits for it."""
    done = complete_topology(chain(Lock(), "locks"), conf=TRY)
    numbers = done.statistics.components["numbers"]
    assert (numbers.failed_by_bolt, numbers.timed_out, numbers.pending) == (2, 0, 0)
    assert done.statistics.components["middle"].emitted == 0


@pytest.mark.parametrize(("conf", "left"), [({}, [(1,), (2,)]), (TRY, [(None,), (None,)])])
def test_receivers_get_what_would_come_from_another_worker(conf, left):
    """C8: a value that loses something on the way loses it in the test."""
    assert complete_topology(chain(Forget()), conf=conf).read_tuples("keep") == left


def test_classes_without_a_module_come_through():
    """C8: as between workers, by cloudpickle."""

    class Local:
        def __eq__(self, other):
            return type(other) is Local

        def __hash__(self):
            return 1

    builder = TopologyBuilder()
    builder.set_spout("locals", FixedTupleSpout([(Local(),)], Fields("local")))
    builder.set_bolt("keep", Keep()).shuffle_grouping("locals")
    done = complete_topology(builder.create_topology("locals"), conf=TRY)
    assert done.statistics.components["locals"].acked == 1
