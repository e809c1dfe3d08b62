"""The state of a topology as a DataFrame, and on the command line."""

from __future__ import annotations

import datetime
import decimal
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import stormspark
from stormspark import BasicBolt, Fields, TopologyBuilder
from stormspark.checkpoint.ordered_keys import encode_key
from stormspark.checkpoint.plain_state import plain_key, plain_value
from stormspark.cli import main
from stormspark.errors import CheckpointError, TopologyNotAliveError
from stormspark.grouping.hashing import fields_task_index
from tests.unit.worker.components import Script
from tests.unit.worker.durable_workers import DurableWorkers
from tests.unit.worker.test_durable_state import counting


class Point:
    """It is not plain data."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point)

    def __hash__(self) -> int:
        return 7


def never(*_: Any) -> None:
    raise AssertionError("somebody's code ran")


class Trap:
    def __reduce__(self) -> Any:
        return never, ("unpickled",)


def _checkpoint(folder: Path) -> Path:
    return folder / "stormspark" / "state"


def _counted(folder: Path, batches: int = 1, **conf: Any) -> DurableWorkers:
    table = _checkpoint(folder)
    table.parent.mkdir(parents=True)
    run = DurableWorkers(counting([("a",), ("b",), ("a",)], tasks=3), table, conf)
    for _ in range(batches):
        run.run_batch()
    return run


def test_state_as_pandas(tmp_path: Path):
    """C36: a row for each key, with the index of the task that has it."""
    _counted(tmp_path)
    frame = stormspark.state(tmp_path, "count")
    assert list(frame.columns) == ["task", "key", "value"]
    rows = {key: (task, value) for task, key, value in frame.itertuples(index=False)}
    assert rows == {
        "a": (fields_task_index(("a",), 3), 2),
        "b": (fields_task_index(("b",), 3), 1),
    }
    assert frame["value"].sum() == 3
    assert (frame.attrs["txid"], frame.attrs["tasks"]) == (0, 3)


@pytest.mark.slow
def test_state_as_of_an_earlier_batch(tmp_path: Path):
    """C36: those that are retained can be read."""
    table = _checkpoint(tmp_path)
    table.parent.mkdir(parents=True)
    for generation in range(3):
        DurableWorkers(counting([("a",)]), table, {}, generation).run_batch()
    values = [stormspark.state(tmp_path, "count", txid)["value"].tolist() for txid in (0, 1, 2, None)]
    assert values == [[1], [2], [3], [3]]


def test_values_stay_whole_in_their_cells(tmp_path: Path):
    """C35: lists and tuples are no columns."""

    class Gather(BasicBolt):
        def prepare(self, conf: Any, context: Any) -> None:
            self.rows: list[Any] = []

        def execute(self, tup: Any, collector: Any) -> None:
            self.rows.append(tup[0])

        def declare_output_fields(self, declarer: Any) -> None:
            declarer.declare(Fields())

    builder = TopologyBuilder()
    builder.set_spout("a", Script([(1,), (2,)]))
    builder.set_bolt("gather", Gather()).shuffle_grouping("a").add_configurations(
        {"topology.state.pickle": True}
    )
    table = _checkpoint(tmp_path)
    table.parent.mkdir(parents=True)
    DurableWorkers(builder.create_topology("gathering"), table, {}).run_batch()
    frame = stormspark.state(tmp_path, "gather")
    assert frame.to_dict("records") == [{"task": 0, "key": "rows", "value": [1, 2]}], "an attribute a row"


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        2.5,
        "storm",
        b"bytes",
        (1, ("a", None)),
        [1, {"b": {2, 3}}],
        frozenset("ab"),
        datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC),
        datetime.timedelta(3),
        decimal.Decimal("1.5"),
    ],
)
def test_plain_data_is_decoded(value: Any):
    """Plain data in the state is decoded to the same value (C35)."""
    assert plain_value(pickle.dumps(value, 5)) == value


def test_nobodys_code_runs():
    """What is not plain data stays bytes, and can be unpickled by whoever trusts it (C35)."""
    data = pickle.dumps(Trap())
    assert plain_value(data) == data
    assert plain_value(b"damaged") == b"damaged"
    keys = [encode_key(Point()), encode_key(("a", Point()))]
    assert [plain_key(key) for key in keys] == keys
    assert plain_key(encode_key(("a", 1, None))) == ("a", 1, None)


def test_what_is_not_there_is_named(tmp_path: Path):
    """A missing table, component, batch or topology is an error that says which ones exist (C36)."""
    with pytest.raises(CheckpointError, match="there is no state table at"):
        stormspark.state(tmp_path, "count")
    _counted(tmp_path)
    with pytest.raises(
        CheckpointError, match=r"no state of 'counts' as of batch 0; it has the state of count"
    ):
        stormspark.state(tmp_path, "counts")
    with pytest.raises(CheckpointError, match=r"has the batches 0 to 0, but not batch 5"):
        stormspark.state(str(tmp_path), "count", txid=5)
    with pytest.raises(TopologyNotAliveError, match="started no topology 'nobody-knows' on this host"):
        stormspark.state("nobody-knows", "count")


def test_a_folder_in_the_working_directory_is_found_by_its_name(tmp_path: Path, monkeypatch: Any):
    """C36: a checkpoint folder, that is; another folder of a topology's name is none."""
    _counted(tmp_path / "counting")
    (tmp_path / "another").mkdir()
    monkeypatch.chdir(tmp_path)
    assert len(stormspark.state("counting", "count")) == 2
    with pytest.raises(TopologyNotAliveError):
        stormspark.state("another", "count")


def test_the_command_prints_a_table(tmp_path: Path):
    """C36: keys in order, with what they are."""
    _counted(tmp_path)
    said = CliRunner().invoke(main, ["state", str(tmp_path), "count"])
    assert said.exit_code == 0, said.output
    assert "count, 3 tasks, as of batch 0: 2 keys" in said.output
    assert any(line.split()[1:] == ["'a'", "2"] for line in said.output.splitlines())
    limited = CliRunner().invoke(main, ["state", str(tmp_path), "count", "--limit", "1", "--json"])
    (line,) = limited.output.splitlines()
    assert json.loads(line)["key"] in "ab"
    refused = CliRunner().invoke(main, ["state", str(tmp_path), "split"])
    assert refused.exit_code == 2 and "has no state of 'split'" in refused.output


@pytest.mark.parametrize(
    "place", ["hdfs://127.0.0.1:9/flow", "hdfs:/flow", "dbfs:/flow", "wasbs://box@account.example/flow"]
)
def test_a_place_that_spark_alone_writes_needs_a_session(place: str) -> None:
    """The advice for a damaged table was given: begin with a new checkpoint folder. Nothing is wrong with this one."""
    with pytest.raises(CheckpointError) as told:
        stormspark.state(place, "count")
    assert f"the state table {place}/stormspark/state can't be read: " in str(told.value)
    assert "Read it with a Spark session that has Delta's jars (stormspark.state(..., spark=spark))" in str(
        told.value
    )
    assert "new checkpoint" not in str(told.value)
