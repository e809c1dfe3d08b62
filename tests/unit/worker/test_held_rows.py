"""Rows of a source whose tuples a bolt keeps over the end of their batch, where batches are transactions: whoever goes, they come
again.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given as given_by
from hypothesis import settings
from hypothesis import strategies as st

from stormspark import BasicBolt, Bolt, Topology, TopologyBuilder
from stormspark.api import ExponentialBackoff, SourceSpout
from stormspark.api.state import StatefulComponent
from stormspark.checkpoint.state_table import StateTable
from stormspark.errors import ComponentError
from stormspark.spi import RangeSpout
from tests.unit.worker.durable_workers import DurableWorkers
from tests.unit.worker.test_windows_as_state import rows

ONCE = {"stormspark.exactly.once": True}
#: What came to `Keeps`, and what it has acked, over all lives.
came: list[Any] = []
acked: list[Any] = []
#: `Sums` raises for the next row, so often.
raises: list[None] = []
troubles: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_yet() -> None:
    for heard in (came, acked, raises, troubles):
        heard.clear()


class Rows(SourceSpout):
    """Its ``translate`` and ``fail`` raise for what is in ``troubles``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(["value"], **options)

    def stream(self, spark: Any) -> Any:
        raise AssertionError

    def translate(self, row: Any) -> Any:
        if ("translate", row[0]) in troubles:
            raise ValueError(row[0])
        return row

    def fail(self, message_id: Any) -> None:
        if "fail" in troubles:
            troubles.remove("fail")
            raise RuntimeError("once")


class Unreliable(Rows):
    reliable = False


class Numbers(RangeSpout):
    """What it reads of a range no table can keep."""

    def __init__(self) -> None:
        super().__init__(["value", "what"])

    def stream(self, spark: Any) -> Any:
        raise AssertionError

    def read(self, values: Any, limit: int) -> Any:
        name, start, end = values
        return [((name, n), (n, complex(n, 1))) for n in range(start, end)], None

    def size(self, values: Any) -> int:
        return int(values[2] - values[1])

    def partition_of(self, values: Any) -> Any:
        return values[0]


class Keeps(Bolt):
    """Keeps odd numbers until a row says that they may go."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.kept = collector, []

    def execute(self, tup: Any) -> None:
        came.append(tup[0])
        if tup[0] == "no":
            if "no" in troubles:
                troubles.remove("no")
                for kept in self.kept:
                    self.collector.fail(kept)
                self.kept.clear()
            self.collector.ack(tup)
        elif tup[0] == "go":
            self.kept.append(tup)
            for kept in self.kept:
                acked.append(kept[0])
                self.collector.ack(kept)
            self.kept.clear()
        elif tup[0] % 2:
            self.kept.append(tup)
        else:
            self.collector.ack(tup)


class Sums(StatefulComponent, BasicBolt):
    """How often each value came: exactly once, but for what is kept beside it."""

    def init_state(self, state: Any) -> None:
        self.state = state

    def execute(self, tup: Any, collector: Any) -> None:
        self.state[tup[0]] = self.state.get(tup[0], 0) + 1
        if raises:
            raises.pop()
            raise ValueError("the batch is taken back")

    def pre_save(self, checkpoint_id: int) -> None:
        pass


def topology(spouts: int = 1, *, sums: bool = False, source: Any = None) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("rows", source or Rows(), spouts)
    builder.set_bolt("keeps", Keeps()).global_grouping("rows")
    if sums:
        builder.set_bolt("sums", Sums()).global_grouping("rows")
    return builder.create_topology("held")


class Lives:
    """Drivers one after another on one table."""

    def __init__(self, folder: Path, workers: int, *, by_driver: bool = False, sums: bool = False) -> None:
        self.folder, self.workers, self.by_driver, self.sums = folder, workers, by_driver, sums
        self.generation, self.began = 0, 0.0
        self.source: Any = None

    def letters(self) -> list[Any]:
        """The rows that were given up."""
        files = (self.folder / "letters").glob("*.jsonl")
        return [json.loads(line)["row"][0] for file in files for line in file.read_text().splitlines()]

    def begin(self, spouts: int = 1, workers: int | None = None) -> DurableWorkers:
        self.generation += 1
        self.began += 100.0
        conf = {
            **ONCE,
            "topology.workers": workers or self.workers,
            "stormspark.dead.letter.dir": str(self.folder / "letters"),
        }
        made = topology(spouts, sums=self.sums, source=self.source)
        return DurableWorkers(made, self.folder, conf, self.generation, self.began, self.by_driver)


def give(life: DurableWorkers, *values: Any) -> None:
    """A batch with these rows, which are dealt out to the spout's tasks."""
    tasks = [task for task in life.plan.tasks.values() if task.component == "rows"]
    for number, task in enumerate(tasks):
        mine = list(values[number :: len(tasks)])
        if mine:
            life.add_rows(task.id, number, rows(*mine))
    life.run_batch()


def table_rows(folder: Path) -> int:
    table = StateTable(folder)
    table.refresh()
    return sum(found.num_rows for found in table.plan_restore("rows", None, None, "rows").rows())


@pytest.mark.slow
@pytest.mark.parametrize("by_driver", [False, True])
@pytest.mark.parametrize("workers", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3))])
def test_what_a_bolt_keeps_comes_again_in_the_next_life(
    tmp_path: Path, workers: int, by_driver: bool
) -> None:
    """C39, E15: whether it ended in order or was killed; what was acked does not."""
    lives = Lives(tmp_path, workers, by_driver=by_driver)
    life = lives.begin()
    give(life, 1, 2, 3)
    give(life, 4, 5)
    assert came == [1, 2, 3, 4, 5]
    assert by_driver or table_rows(tmp_path) == 3
    life = lives.begin()
    came.clear()
    give(life, 6, 7)
    assert Counter(came) == Counter([1, 3, 5, 6, 7])
    life = lives.begin()
    came.clear()
    give(life, 8)
    assert Counter(came) == Counter([1, 3, 5, 7, 8])
    give(life, "go")
    assert Counter(acked) == Counter([1, 3, 5, 7, "go"])
    came.clear()
    give(lives.begin(), 10)
    assert came == [10]
    assert by_driver or table_rows(tmp_path) == 0


@pytest.mark.slow
@pytest.mark.parametrize("by_driver", [False, True])
@pytest.mark.parametrize("spouts", [(1, 3, 2), (3, 1, 4), (4, 4, 2)])
def test_rows_find_a_task_where_there_are_fewer_or_more(
    tmp_path: Path, spouts: tuple[int, ...], by_driver: bool
) -> None:
    """A18: each row with one task, in workers that are others each time; nothing of it is left in the table in the end."""
    lives = Lives(tmp_path, 1, by_driver=by_driver)
    kept: list[Any] = []
    for number, tasks in enumerate(spouts):
        life = lives.begin(tasks, workers=number + 1)
        came.clear()
        new = [10 * number + n for n in (1, 3, 5, 7)]
        give(life, *new)
        assert Counter(came) == Counter(kept + new)
        kept += new
    give(life, "go")
    assert Counter(acked) == Counter([*kept, "go"])
    came.clear()
    give(lives.begin(2), 100)
    assert came == [100]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("retries", [None, 0])
def test_a_row_that_fails_after_its_batch_is_open_until_it_comes_again(
    tmp_path: Path, workers: int, retries: int | None
) -> None:
    """K4, C44: or is a dead letter; whoever dies before the next commit."""
    lives = Lives(tmp_path, workers)
    lives.source = Rows(retry=ExponentialBackoff(max_retries=retries))
    life = lives.begin()
    give(life, 1, 2)
    troubles.append("no")
    give(life, "no")
    assert table_rows(tmp_path) == 1 and troubles == []
    life = lives.begin()
    came.clear()
    give(life, 6)
    assert came == [1, 6] and table_rows(tmp_path) == 1
    if retries == 0:
        troubles.extend(["no", "fail"])  # the source's own `fail` raises, too
        give(life, "no")
        give(life, 8)
        assert lives.letters() == [1] and table_rows(tmp_path) == 0


def test_a_dead_letter_of_a_row_that_was_kept_is_not_forgotten_with_a_batch(tmp_path: Path) -> None:
    """K4: translate raises for it, and the batch is taken back for another reason."""
    lives = Lives(tmp_path, 1, sums=True)
    give(lives.begin(), 1, 2)
    life = lives.begin()
    troubles.append(("translate", 1))
    raises.append(None)
    give(life, 4)
    assert lives.letters() == [1] and table_rows(tmp_path) == 0


def test_rows_that_are_taken_back_with_others_have_used_no_retry(tmp_path: Path) -> None:
    """C44: a row that did not fail is not counted as if it had."""
    lives = Lives(tmp_path, 1, sums=True)
    lives.source = Rows(retry=ExponentialBackoff(max_retries=0))
    life = lives.begin()
    give(life, 1, 2)
    raises.extend([None, None])
    came.clear()
    give(life, 4)
    assert lives.letters() == [] and 1 in came and table_rows(tmp_path) == 1


def test_a_row_that_no_table_can_keep_is_reported(tmp_path: Path) -> None:
    """Values of a source's own that are no values of columns: by name, and before the batch is committed."""
    lives = Lives(tmp_path, 1)
    lives.source = Numbers()
    life = lives.begin()
    (task,) = [task.id for task in life.plan.tasks.values() if task.component == "rows"]
    life.add_rows(task, 0, [("p", 0, 4)])
    with pytest.raises(
        ComponentError, match=r"rows\[0\]: a bolt keeps a tuple .* can't be kept until it is acked"
    ):
        life.run_batch()


def test_rows_leave_the_table_where_their_source_is_not_reliable_any_more(tmp_path: Path) -> None:
    """K2: they come once more, and then nobody waits for them."""
    lives = Lives(tmp_path, 1)
    give(lives.begin(), 1, 2)
    lives.source = Unreliable()
    came.clear()
    give(lives.begin(), 4)
    assert came == [1, 4] and table_rows(tmp_path) == 0


def test_a_batch_ends_while_rows_of_earlier_ones_wait_for_a_spout_that_is_not_active(tmp_path: Path) -> None:
    """B13: in a life that begins so, and where a batch was taken back; they come when it is active."""
    lives = Lives(tmp_path, 1)
    give(lives.begin(), 1, 2)
    life = lives.begin()
    life.set_active(False)
    came.clear()
    life.run_batch()
    life.run_batch()
    assert came == [] and table_rows(tmp_path) == 1
    life.set_active(True)
    life.run_batch()
    assert came == [1]
    life.set_active(False)
    for worker in life.workers:
        worker.roll_back(life._batch, life._committed, "Spark failed")
    life.run_batch()
    assert came == [1]
    life.set_active(True)
    life.run_batch()
    assert came == [1, 1] and table_rows(tmp_path) == 1


@pytest.mark.slow
@settings(max_examples=settings().max_examples // 4)
@given_by(
    st.integers(1, 3),
    st.lists(
        st.one_of(
            st.integers(1, 4),  # a batch with so many rows
            st.sampled_from(["go", "raises", "killed", "killed before the commit"]),
        ),
        max_size=12,
    ),
)
def test_no_row_is_lost_and_those_that_nobody_keeps_come_once(workers: int, steps: list[Any]) -> None:
    """C39, C42, E15: whatever happens between the batches, and in them."""
    for heard in (came, acked, raises):
        heard.clear()
    with TemporaryDirectory() as folder:
        lives = Lives(Path(folder), workers, sums=True)
        life = lives.begin()
        number, given = 0, set[Any]()
        for step in steps:
            if step == "raises":
                raises.append(None)
            elif step == "killed":
                life = lives.begin()
            elif step == "killed before the commit":
                life.commits.commit = _is_killed  # type: ignore[method-assign, assignment]
                with suppress(KeyboardInterrupt):
                    give(life, "go")
                life = lives.begin()
                give(life, "go")  # the source has it in the batch that comes again
            elif step == "go":
                give(life, "go")
            else:
                new = range(number, number + step)
                number += step
                given |= set(new)
                give(life, *new)
        life = lives.begin()
        acked.clear()
        give(life, "go")
        give(life, "go")
        life = lives.begin()
        came.clear()
        give(life, "go")
        assert came == ["go"], "what was acked and committed comes again"
        seen = life.state("sums")
        assert {value for value in seen if value != "go"} == given
        assert all(times == 1 for value, times in seen.items() if value != "go" and not value % 2)
        assert table_rows(Path(folder)) == 0


def _is_killed(*args: Any) -> None:
    raise KeyboardInterrupt
