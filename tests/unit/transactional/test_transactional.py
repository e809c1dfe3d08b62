"""Batches of transactional topologies on the local engine, step by step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sql

from stormspark import Bolt, Fields, TopologyBuilder
from stormspark.connectors import FileSpout
from stormspark.errors import ComponentError, InvalidTopologyError
from stormspark.local import LocalCluster
from stormspark.map_state import StateType
from stormspark.plan import plan_topology
from stormspark.testing import TestWordSpout
from stormspark.transactional import Committer, TransactionalTopologyBuilder, TransactionAttempt
from tests.unit.transactional.components import Add, Nameless, Pass, Sum, Tens, Total, begin, of, told

Fails = Callable[[str, TransactionAttempt], bool]


def run(builder: TransactionalTopologyBuilder, workers: int = 1, **conf: object) -> None:
    settings = {"topology.workers": workers, **{key.replace("_", "."): value for key, value in conf.items()}}
    with LocalCluster(simulated_time=True) as cluster:
        cluster.submit_topology("transactions", settings, builder.create_topology()).run_until_idle()


def first_attempts(component: str) -> Fails:
    """This component fails the first attempt at each transaction."""
    return lambda id, attempt: id == component and attempt == first(attempt.txid)


def first(txid: int) -> TransactionAttempt:
    attempts = [
        line[1] for line in told if line[0] in ("prepare", "emit") and isinstance(line[1], TransactionAttempt)
    ]
    return min(attempt for attempt in attempts if attempt.txid == txid)


def finished(component: str) -> list[tuple[int, int]]:
    return [(attempt.txid, total) for id, attempt, total in of("finish") if id == component]


SUMS = [(1, 45), (2, 145), (3, 245)]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_batch_bolt_has_an_instance_for_each_attempt(workers: int) -> None:
    """G6, G7: prepared with the attempt before its first tuple; its batch ends after that of a batch bolt before it."""
    begin()
    builder = TransactionalTopologyBuilder("sums", "tens", Tens(), 2)
    builder.set_bolt("sum", Sum(), 2).fields_grouping("tens", Fields("number"))
    builder.set_bolt("pass", Pass(), 2).shuffle_grouping("sum")
    builder.set_bolt("again", Sum()).global_grouping("pass")
    run(builder, workers)
    assert finished("again") == SUMS
    assert len(finished("sum")) == 6
    prepared = [one for one in of("prepare") if one[0] == "again"]
    assert prepared == [("again", TransactionAttempt(txid, 0)) for txid in (1, 2, 3)]
    assert ("closed", "coordinator") in told and told.count(("closed", "emitter")) == 2


def test_the_coordinator_knows_the_transaction_before() -> None:
    """G3: its metadata, and None first; the emitters hear what is committed."""
    begin()
    builder = TransactionalTopologyBuilder("sums", "tens", Tens())
    builder.set_bolt("sum", Sum()).shuffle_grouping("tens")
    run(builder)
    assert of("initialize") == [(1, None), (2, 0), (3, 10)]
    assert of("cleanup") == [(1,), (2,)]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_batch_bolt_that_fails_takes_its_batch_back(workers: int) -> None:
    """G2, G6: the same txid, another attempt, a fresh instance; what the first attempt made is nobody's."""
    begin(first_attempts("sum"))
    builder = TransactionalTopologyBuilder("sums", "tens", Tens(), 2)
    builder.set_bolt("sum", Sum()).global_grouping("tens")
    builder.set_committer_bolt("write", Sum()).global_grouping("sum")
    run(builder, workers)
    assert finished("sum") == [line for line in SUMS for _ in range(2)]
    # No committer came to a batch that had failed elsewhere.
    assert finished("write") == SUMS
    attempts = [attempt for id, attempt, _ in of("finish") if id == "sum"]
    assert len(set(attempts)) == 6


def test_a_tuple_that_fails_after_finish_batch_takes_the_batch_back() -> None:
    """G6: what `finish_batch` emits belongs to no tree, and to the batch all the same."""
    begin(first_attempts("pass"))
    builder = TransactionalTopologyBuilder("sums", "tens", Tens())
    builder.set_bolt("sum", Sum()).global_grouping("tens")
    builder.set_bolt("pass", Pass()).shuffle_grouping("sum")
    builder.set_committer_bolt("write", Sum()).global_grouping("pass")
    run(builder)
    assert finished("write") == SUMS
    assert len(finished("sum")) == 6


@pytest.mark.parametrize("workers", [1, 2])
def test_a_committer_that_fails_gets_the_same_batch_again(workers: int) -> None:
    """G3, G5: once committers may have acted, metadata is the same, though the coordinator's task begins anew."""
    begin(first_attempts("write"))
    builder = TransactionalTopologyBuilder("sums", "tens", Tens(), 2)
    builder.set_bolt("write", type("Write", (Committer, Sum), {})()).global_grouping("tens")
    run(builder, workers)
    assert finished("write") == [line for line in SUMS for _ in range(2)]
    # Asked once for each: the second attempt had what was announced of the first.
    assert of("initialize") == [(1, None), (2, 0), (3, 10)]


def test_a_committers_work_is_repeated_also_where_spouts_are_not_active() -> None:
    """G3, B13: deactivated between two attempts, the transaction comes again, because a committer has acted on it."""
    begin()
    builder = TransactionalTopologyBuilder("sums", "tens", Tens())
    builder.set_committer_bolt("write", Sum()).global_grouping("tens")
    with LocalCluster(simulated_time=True) as cluster:
        running = cluster.submit_topology("transactions", {}, builder.create_topology())

        def deactivated(component: str, attempt: TransactionAttempt) -> bool:
            if component == "write" and attempt.txid == 2 and attempt == first(2):
                running.workers.set_active(False)
                return True
            return False

        begin(deactivated)
        running.run_until_idle()
    assert finished("write") == [SUMS[0], SUMS[1], SUMS[1]]


def test_committers_and_what_comes_after_them_end_last() -> None:
    """G5, G6: PROCESSING, PROCESSED, COMMITTING."""
    begin()
    builder = TransactionalTopologyBuilder("sums", "tens", Tens(1))
    builder.set_committer_bolt("early", Sum()).global_grouping("tens")
    builder.set_bolt("after", Sum()).global_grouping("early")
    builder.set_bolt("late", Sum()).global_grouping("tens")
    builder.set_bolt("later", Sum()).global_grouping("late")
    run(builder, 2)
    order = [id for id, _, _ in of("finish")]
    assert set(order[:2]) == {"late", "later"} and order[2:] == ["early", "after"]
    assert finished("after") == [SUMS[0]]


def test_nobody_ends_a_batch_while_anything_is_under_way() -> None:
    """G7: where supersteps are too short for what has come, and where `finish_batch` emits more than one superstep takes."""
    begin()
    builder = TransactionalTopologyBuilder("sums", "tens", Tens(2), 2)
    builder.set_bolt("sum", Sum(copies=2000), 2).fields_grouping("tens", Fields("number"))
    builder.set_bolt("pass", Pass(), 2).shuffle_grouping("sum")
    builder.set_bolt("again", Sum()).global_grouping("pass")
    with LocalCluster(seed=1) as cluster:
        conf = {"topology.workers": 3, "stormspark.superstep.deadline.ms": 1, "stormspark.batch.target.ms": 1}
        cluster.submit_topology("short", conf, builder.create_topology()).run_until_idle(60)
    assert [total for _, total in finished("again")] == [2000 * total for total in (45, 145)]


def test_a_batch_without_a_transaction_ends_nobody() -> None:
    """G3: nothing is ready, so no bolt hears of anything; txids of such batches are missing."""
    begin()
    builder = TransactionalTopologyBuilder("sums", "tens", Tens(0))
    builder.set_committer_bolt("write", Sum()).global_grouping("tens")
    run(builder)
    assert of("finish") == of("prepare") == of("emit") == []


@pytest.mark.slow
def test_state_of_a_batch_bolt_is_committed_with_its_batch() -> None:
    """G6, C42: what a failed attempt put into the state is taken back with it."""
    begin(first_attempts("total"))
    builder = TransactionalTopologyBuilder("sums", "tens", Tens())
    builder.set_bolt("total", Total()).global_grouping("tens")
    run(builder)
    assert finished("total") == [(1, 45), (1, 45), (2, 190), (2, 190), (3, 435), (3, 435)]
    assert [saved for (saved,) in of("saved")] == [45, 190, 435]


@pytest.mark.parametrize("kind", [StateType.TRANSACTIONAL, StateType.OPAQUE])
def test_what_is_outside_counts_each_batch_once(tmp_path: Path, kind: StateType) -> None:
    """G8: a committer that has written and then failed writes again, and the number of the batch tells."""
    begin(first_attempts("add"))
    url = f"sqlite:///{tmp_path / 'totals.db'}"
    builder = TransactionalTopologyBuilder("sums", "tens", Tens(), 2)
    builder.set_bolt("add", Add(url, kind)).global_grouping("tens")
    run(builder)
    assert len(finished("add")) == 6
    engine = sql.create_engine(url)
    with engine.connect() as connection:
        ((txid, total),) = connection.execute(
            sql.text("SELECT txid, value FROM totals WHERE key = '[\"sum\"]'")
        ).all()
    engine.dispose()
    assert (txid, int(total)) == (3, 435)


def test_a_tuple_without_the_attempt_is_refused() -> None:
    """G2: the attempt is the first value of every tuple."""
    begin()
    builder = TransactionalTopologyBuilder("sums", "tens", Tens())
    builder.set_bolt("nameless", Nameless()).global_grouping("tens")
    with pytest.raises(ComponentError, match="first value of every tuple must be the transaction attempt"):
        run(builder, stormspark_max_attempts=2)


# -- what is refused when the topology is written or planned ---------------------------------------


def test_the_builder_takes_what_it_can_run() -> None:
    """G1: a transactional spout or a source; batch bolts and basic bolts; committers are batch bolts."""
    with pytest.raises(
        InvalidTopologyError, match=r"test_transactional.py.*'words'.*must be a TransactionalSpout"
    ):
        TransactionalTopologyBuilder("id", "words", TestWordSpout())  # type: ignore[arg-type]
    with pytest.raises(InvalidTopologyError, match="must be a string"):
        TransactionalTopologyBuilder("", "tens", Tens())
    builder = TransactionalTopologyBuilder("id", "tens", Tens())

    class Plain(Bolt):
        def execute(self, tup: object) -> None:
            pass

    with pytest.raises(InvalidTopologyError, match="'plain' must be a BatchBolt or a BasicBolt"):
        builder.set_bolt("plain", Plain())  # type: ignore[arg-type]
    with pytest.raises(InvalidTopologyError, match="'pass' must be a BatchBolt"):
        builder.set_committer_bolt("pass", Pass())  # type: ignore[arg-type]

    class Later(Sum):
        async def finish_batch(self) -> None:  # type: ignore[override]
            pass

    with pytest.raises(
        InvalidTopologyError, match=r"'later': finish_batch of class .*Later .*is a coroutine function"
    ):
        builder.set_bolt("later", Later())
    with pytest.raises(InvalidTopologyError, match="did you forget the brackets"):
        builder.set_bolt("sum", Sum)  # type: ignore[arg-type]
    with pytest.raises(InvalidTopologyError, match="field 'tx'"):
        TransactionalTopologyBuilder("id", "lines", FileSpout("/lines", fields=["tx"]))


def test_the_topology_is_an_ordinary_one() -> None:
    """G1, G3: a coordinator of one task, and emitters that all hear of every batch; the id is in the configuration."""
    builder = TransactionalTopologyBuilder("id", "tens", Tens(), 4)
    builder.spout_declarer.set_debug(False)
    builder.set_bolt("sum", Sum(), 2).fields_grouping("tens", Fields("tx"))
    topology = builder.build_topology("name")
    plan = plan_topology(topology)
    assert {name: len(one.tasks) for name, one in plan.components.items()} == {
        "tens/coordinator": 1,
        "tens": 4,
        "sum": 2,
    }
    assert plan.exactly_once and plan.conf["topology.transactional.id"] == "id" and topology.name == "name"
    assert not plan.announces and plan.ending_rounds == 1
    with pytest.raises(InvalidTopologyError, match=r"stormspark.exactly.once is false"):
        plan_topology(topology, {"stormspark.exactly.once": False})


def test_a_batch_in_a_loop_has_no_end() -> None:
    """G7, A15: batch bolts in a loop, or after one that a batch bolt feeds, are refused; a loop before them is none of theirs."""
    builder = TransactionalTopologyBuilder("id", "tens", Tens())
    builder.set_bolt("sum", Sum()).global_grouping("tens").global_grouping("pass")
    builder.set_bolt("pass", Pass()).shuffle_grouping("sum")
    with pytest.raises(InvalidTopologyError, match=r"bolt 'sum'.*in a loop of 'pass', 'sum'"):
        plan_topology(builder.create_topology())
    builder = TransactionalTopologyBuilder("id", "tens", Tens())
    builder.set_bolt("sum", Sum()).global_grouping("tens")
    builder.set_bolt("round", Pass()).shuffle_grouping("sum").shuffle_grouping("round")
    builder.set_bolt("last", Sum()).global_grouping("round")
    with pytest.raises(
        InvalidTopologyError,
        match=r"bolt 'last'.*is a batch bolt after a loop of 'round' that the batch bolt 'sum' feeds",
    ):
        plan_topology(builder.create_topology())
    builder = TransactionalTopologyBuilder("id", "tens", Tens())
    builder.set_bolt("round", Pass()).shuffle_grouping("tens").shuffle_grouping("round")
    builder.set_bolt("last", Sum()).global_grouping("round")
    assert plan_topology(builder.create_topology()).ends_of_batches["last"][0] == 1


def test_ordinary_topologies_have_no_ends_of_batches() -> None:
    """G7: nobody else pays for it."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    plan = plan_topology(builder.create_topology("plain"))
    assert (plan.ends_of_batches, plan.ending_rounds, plan.exactly_once) == ({}, 0, False)
