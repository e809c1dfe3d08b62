"""Spouts that Spark reads for: any streaming DataFrame."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark import Fields, TopologyBuilder
from stormspark.api import ExponentialBackoff, Routed, SourceSpout
from stormspark.connectors import DataFrameSpout, FileSpout
from stormspark.errors import InvalidTopologyError
from stormspark.local import submit as submit_locally
from stormspark.spark import SparkTopology
from tests.conformance.components import EFFECTS, Record, read_effects
from tests.conformance.components import recorded as recorded_effects
from tests.waiting import PATIENCE_SECS, wait_for, wait_for_acks, wait_until_idle, worker_processes

pytestmark = pytest.mark.spark


def write_numbers(folder: Path, name: str, numbers: range) -> None:
    """A file of JSON lines, there at once as a whole."""
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text("".join(json.dumps({"n": n, "text": f"line {n}"}) + "\n" for n in numbers))
    hidden.rename(folder / name)


def numbers_in(folder: Path) -> Callable[[Any], Any]:
    path = folder.as_uri()
    return lambda spark: spark.readStream.schema("n long, text string").json(path)


def recorded(folder: Path, component: str = "record") -> Counter[int]:
    return Counter(one.values[0] for one in recorded_effects(read_effects(folder, component)))


def wait_for_more(folder: Path, rows: int) -> None:
    seen = recorded(folder).total()
    wait_for(lambda: recorded(folder).total() > seen + rows, message=f"{rows} more rows")


def settings(folder: Path, **more: Any) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    return {"topology.workers": 2, EFFECTS: str(folder), **{k.replace("_", "."): v for k, v in more.items()}}


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_of_files_become_tuples_as_they_come(
    workers: int, start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """Every row is a tuple, once, acked; files that come later too."""
    for part in range(3):
        write_numbers(tmp_path / "in", f"{part}.json", range(part * 2000, part * 2000 + 2000))
    builder = TopologyBuilder()
    builder.set_spout("numbers", DataFrameSpout(numbers_in(tmp_path / "in"), ["n", "text"]), parallelism=2)
    builder.set_bolt("record", Record(), 3).fields_grouping("numbers", Fields("n"))
    running = start(
        builder.create_topology("files"), conf=settings(tmp_path / "out") | {"topology.workers": workers}
    )
    wait_for_acks(running, "numbers", 6000)
    write_numbers(tmp_path / "in", "later.json", range(6000, 6100))
    wait_for_acks(running, "numbers", 6100)
    wait_until_idle(running)
    running.stop()
    assert recorded(tmp_path / "out") == Counter(range(6100))
    numbers = running.statistics().components["numbers"]
    assert (numbers.emitted, numbers.failed, numbers.pending, numbers.queued) == (6100, 0, 0, 0)


class Fussy(SourceSpout):
    """Translates: skips multiples of 10, can't read multiples of 7, routes odd numbers; notes nothing of its own."""

    def __init__(self, folder: str) -> None:
        super().__init__(["n"], retry=ExponentialBackoff(max_retries=2))
        self.folder = folder

    def stream(self, spark: Any) -> Any:
        return numbers_in(Path(self.folder))(spark).select("n")

    def translate(self, row: tuple[Any, ...]) -> Any:
        (n,) = row
        if n % 10 == 0:
            return None
        if n % 7 == 0:
            raise ValueError(f"can't read {n}")
        return Routed((n,), "odd") if n % 2 else (n,)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(self.fields)
        declarer.declare_stream("odd", self.fields)


class AlwaysFails(Record):
    """Fails 13 whenever it comes."""

    def execute(self, tup: Any, collector: Any) -> None:
        from stormspark import FailedException

        if tup["n"] == 13:
            self.effects.write(self.task, "", "", -13)
            raise FailedException("unlucky")
        super().execute(tup, collector)


def test_rows_are_translated_retried_and_given_up(
    start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """K4, K7, W13: a row that always fails is tried again twice; then it, and what can't be read, are dead letters."""
    write_numbers(tmp_path / "in", "a.json", range(1, 41))
    builder = TopologyBuilder()
    builder.set_spout("numbers", Fussy(str(tmp_path / "in")))
    builder.set_bolt("record", AlwaysFails(), 2).shuffle_grouping("numbers").shuffle_grouping(
        "numbers", "odd"
    )
    running = start(
        builder.create_topology("fussy"),
        conf=settings(tmp_path / "out", stormspark_dead_letter_dir=str(tmp_path / "dead")),
    )
    wait_for(lambda: running.statistics().components["numbers"].dead_letters == 6, message="six dead letters")
    wait_until_idle(running)
    running.stop()
    unreadable = [n for n in range(1, 41) if n % 7 == 0]
    good = [n for n in range(1, 41) if n % 10 and n % 7 and n != 13]
    assert recorded(tmp_path / "out") == Counter(good) + Counter({-13: 3})
    letters = [
        json.loads(line) for path in (tmp_path / "dead").iterdir() for line in path.read_text().splitlines()
    ]
    assert sorted(letter["row"] for letter in letters) == [[n] for n in sorted([*unreadable, 13])]
    reasons = {letter["row"][0]: letter["reason"] for letter in letters}
    assert reasons[7] == "translate raised ValueError: can't read 7"
    assert reasons[13].startswith("given up after its last retry: failed by a bolt: record[")
    numbers = running.statistics().components["numbers"]
    assert (numbers.acked, numbers.failed, numbers.restarts) == (len(good), 3, 0)
    assert running.error is None


@pytest.mark.long  # in short it is in `test_native_sources.py` and in `test_durable_acker.py`
def test_a_killed_worker_costs_no_row(start: Callable[..., SparkTopology], tmp_path: Path) -> None:
    """E15: the batch is read again; every row's effect is there at least once."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", DataFrameSpout(numbers_in(tmp_path / "in"), ["n", "text"]), parallelism=2)
    builder.set_bolt("record", Record(), 2).fields_grouping("numbers", Fields("n"))
    (tmp_path / "in").mkdir()
    running = start(builder.create_topology("killed-source"), conf=settings(tmp_path / "out"))
    for part in range(6):
        write_numbers(tmp_path / "in", f"{part}.json", range(part * 1000, part * 1000 + 1000))
        wait_for_more(tmp_path / "out", 100)
        if part in (1, 3):
            # The one that was killed before may not have its next life yet.
            wait_for(lambda: 1 in worker_processes("killed-source"), message="the worker's next life")
            os.kill(worker_processes("killed-source")[1].pid, signal.SIGKILL)
    wait_until_idle(running)
    running.stop()
    counts = recorded(tmp_path / "out")
    assert set(counts) == set(range(6000))
    assert running.error is None


def test_a_restart_goes_on_where_the_checkpoint_is(
    start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """Spark's checkpoint is the truth for what has been read."""
    for run in range(2):
        write_numbers(tmp_path / "in", f"{run}.json", range(run * 100, run * 100 + 100))
        builder = TopologyBuilder()
        builder.set_spout("numbers", DataFrameSpout(numbers_in(tmp_path / "in"), ["n", "text"]))
        builder.set_bolt("record", Record()).shuffle_grouping("numbers")
        conf = settings(tmp_path / f"out-{run}")
        running = start(builder.create_topology("again"), conf=conf, checkpoint=tmp_path / "checkpoint")
        wait_for_acks(running, "numbers", 100)
        wait_until_idle(running)
        running.stop()
        assert recorded(tmp_path / f"out-{run}") == Counter(range(run * 100, run * 100 + 100))


@pytest.mark.parametrize(
    ("stream", "fields", "error"),
    [
        (lambda spark: spark.range(3), ["n"], r"stream must return a streaming DataFrame, got a DataFrame that is not a stream"),
        (lambda spark: None, ["n"], r"stream must return a streaming DataFrame, got None"),
        (lambda spark: 1 / 0, ["n"], r"spout 'numbers': stream raised ZeroDivisionError"),
        (
            lambda spark: spark.readStream.format("rate").load(),
            ["n"],
            r"its stream has 2 columns \(timestamp, value\), but it declares 1 fields \(n\); select",
        ),
    ],
)  # fmt: skip
def test_a_stream_that_does_not_fit_stops_the_topology(
    stream: Any, fields: list[str], error: str, start: Callable[..., SparkTopology]
) -> None:
    """Bad input: told with the component and the user's line, before anything runs."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", DataFrameSpout(stream, fields))
    running = start(builder.create_topology("unfit"))
    assert running.wait(PATIENCE_SECS)
    assert isinstance(running.error, InvalidTopologyError)
    with pytest.raises(InvalidTopologyError, match=error):
        raise running.error
    assert "test_sources.py:" in str(running.error)


class SameIds(SourceSpout):
    """Rows of files whose message ids are their texts; ``at`` are seconds since 1970."""

    id_columns = ("text",)

    def __init__(self, folder: Path, texts: str = "text") -> None:
        super().__init__(["n"], lambda row: (row[1],))
        self.folder, self.texts = str(folder), texts

    def stream(self, spark: Any) -> Any:
        rows = spark.readStream.schema("text string, n long, at long").json(self.folder)
        return rows.selectExpr(f"{self.texts} as text", "n", "timestamp_seconds(at) as at")


def test_rows_that_share_a_message_id_are_all_processed_and_what_python_can_not_hold_is_a_dead_letter(
    start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """The ids are open in this batch, and over the ends of batches where bolts have not come so far."""
    folder, letters = tmp_path / "in", tmp_path / "letters"
    folder.mkdir()
    for part in range(2):
        lines = [
            json.dumps({"text": "the same", "n": n, "at": 253_402_300_800 + 86_400 if n == 7 else n})
            for n in range(part * 500, part * 500 + 500)
        ]
        (folder / f"{part}.json").write_text("\n".join(lines))
    builder = TopologyBuilder()
    builder.set_spout("numbers", SameIds(folder))
    builder.set_bolt("record", Record(), 2).fields_grouping("numbers", Fields("n"))
    conf = settings(tmp_path / "out", stormspark_dead_letter_dir=str(letters))
    running = start(builder.create_topology("same-ids"), conf=conf)
    wait_for_acks(running, "numbers", 999)
    wait_until_idle(running)
    assert running.statistics().components["numbers"].dead_letters == 1
    running.stop()
    assert running.error is None
    assert recorded(tmp_path / "out") == Counter(n for n in range(1000) if n != 7)
    (letter,) = [json.loads(line) for file in letters.iterdir() for line in file.read_text().splitlines()]
    assert letter["message_id"] == ["the same"] and letter["row"] == ["the same", 7, None]
    assert "column 'at' holds a timestamp" in letter["reason"]


class NestedIds(SameIds):
    """Fails one message, once, and writes down the ids of all that are acked."""

    def open(self, conf: Any, context: Any) -> None:
        self.effects = Path(conf[EFFECTS])

    def ack(self, message_id: Any) -> None:
        with (self.effects / "acked").open("a") as file:
            file.write(f"{message_id!r}\n")


def test_arrays_structs_and_maps_are_message_ids(start: Callable[..., SparkTopology], tmp_path: Path) -> None:
    """K2: acked by keys that are made of them, within their batches and over the ends of batches."""
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    lines = [json.dumps({"text": f"line {n}", "n": n, "at": n}) for n in range(300)]
    (folder / "0.json").write_text("\n".join(lines))
    builder = TopologyBuilder()
    ids = "struct(array(text, null) as texts, map(text, timestamp_seconds(0)) as times, n % 2 as odd)"
    builder.set_spout("numbers", NestedIds(folder, ids))
    builder.set_bolt("record", Record(), 2).fields_grouping("numbers", Fields("n"))
    running = start(builder.create_topology("nested-ids"), conf=settings(out))
    wait_for_acks(running, "numbers", 300)
    running.stop()
    assert running.error is None and recorded(out) == Counter(range(300))
    acked = (out / "acked").read_text().splitlines()
    assert len(set(acked)) == 300
    assert any(
        line.startswith("((('texts', ('line 7', None)), ('times', (('line 7', datetime") for line in acked
    )


@pytest.mark.parametrize("text", ["parse_json('1')", "array(struct(parse_json('1') as v))"])
def test_message_ids_are_made_of_plain_values(
    text: str, start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """Bad input: what Python gets of these is no value that could be told from others."""
    tmp_path.joinpath("in").mkdir()
    builder = TopologyBuilder()
    builder.set_spout("numbers", SameIds(tmp_path / "in", text))
    running = start(builder.create_topology("unfit-ids"))
    assert running.wait(PATIENCE_SECS)
    with pytest.raises(
        InvalidTopologyError, match=r"id_columns names column 'text' of type .*variant.*, but message ids"
    ):
        raise running.error or AssertionError


def test_the_local_engine_refuses_in_one_line() -> None:
    """It has no Spark."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", DataFrameSpout(lambda spark: None, ["n"]))
    with pytest.raises(
        InvalidTopologyError, match=r"test_sources\.py:\d+: spout 'numbers' can be read only by Spark"
    ):
        submit_locally(builder.create_topology("local"))


def test_lines_of_text_files(start: Callable[..., SparkTopology], tmp_path: Path) -> None:
    """K7: a translator makes words of lines, empty lines are skipped; a file that is half written is not seen."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("1\n\n2\n3\n")
    (folder / ".b.txt").write_text("4\n")
    builder = TopologyBuilder()
    spout = FileSpout(folder, translator=lambda row: (int(row[0]),) if row[0] else None, fields=["n"])
    builder.set_spout("numbers", spout)
    builder.set_bolt("record", Record()).shuffle_grouping("numbers")
    running = start(builder.create_topology("lines"), conf=settings(tmp_path / "out"))
    wait_for_acks(running, "numbers", 3)
    (folder / ".b.txt").rename(folder / "b.txt")
    wait_for_acks(running, "numbers", 4)
    running.stop()
    assert recorded(tmp_path / "out") == Counter([1, 2, 3, 4])


def test_a_file_spout_says_what_it_needs() -> None:
    """Bad input: before anything runs."""
    with pytest.raises(InvalidTopologyError, match=r"files of format 'json' need a schema, .* and fields"):
        FileSpout("/nowhere", "json")
