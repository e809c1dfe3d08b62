"""Batches that were recorded, run again: the same where the bolt is deterministic, told where it is not."""

from __future__ import annotations

import importlib
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stormspark import BasicBolt, Bolt, Fields, Topology, TopologyBuilder
from stormspark.api.state import StatefulBolt
from stormspark.checkpoint.recorded_inputs import InputFiles
from stormspark.cli import main
from stormspark.errors import CheckpointError
from stormspark.transactional import TransactionalTopologyBuilder
from stormspark.worker.replays.replay import plan_that_ran, replay
from stormspark.worker.replays.result import Change, Emitted
from tests.conformance.components import EFFECTS, read_effects
from tests.conformance.transactional_components import DrawnRanges, Partial
from tests.unit.worker.components import Script
from tests.unit.worker.durable_workers import DurableWorkers
from tests.unit.worker.test_durable_state import Count

RECORD = {"stormspark.record.inputs": True}
WORDS = [(f"word-{n % 7}",) for n in range(60)]


class Draws(Count):
    """Emits what nobody can foresee."""

    def execute(self, tup: Any) -> None:
        number = random.random()
        self.counts[tup[0]] = number
        self.collector.emit((tup[0], number), anchors=[tup])
        self.collector.ack(tup)


class Collects(BasicBolt):
    """Knows nothing of state."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.context = context
        self.seen: list[Any] = []

    def execute(self, tup: Any, collector: Any) -> None:
        self.seen.append(tup[0])
        collector.emit((len(self.seen),))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("seen"))


class Later(StatefulBolt[Any]):
    """Acks the first of two with the second, and emits at the end of the batch."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.held: list[Any] = []

    def init_state(self, state: Any) -> None:
        self.state = state

    def execute(self, tup: Any) -> None:
        self.held.append(tup)
        if len(self.held) == 2:
            for one in self.held:
                self.collector.ack(one)
            self.held = []

    def pre_prepare(self, txid: int) -> None:
        self.state["last"] = txid

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("none"))


def counting(bolt: Any, rows: list[tuple[Any, ...]] = WORDS, tasks: int = 2, **settings: Any) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("words", Script(rows, ("word",)))
    count = builder.set_bolt("count", bolt, tasks).fields_grouping("words", Fields("word"))
    count.add_configurations(settings)
    return builder.create_topology("counting")


def recorded(folder: Path, topology: Topology, workers: int = 2, batches: int = 1) -> DurableWorkers:
    run = DurableWorkers(topology, folder, {"topology.workers": workers, **RECORD})
    for _ in range(batches):
        run.run_batch()
    return run


@pytest.mark.parametrize("workers", [1, 2])
def test_a_deterministic_bolt_does_the_same_again(tmp_path: Path, workers: int):
    """C35: emits, acks and state."""
    run = recorded(tmp_path, counting(Count()), workers)
    numbers = {}
    for index in range(2):
        again = replay(run.plan, str(tmp_path), "count", index, 0)
        assert again.differences == []
        assert all(one.acked and not one.failed for one in again.inputs)
        assert [one.values[0] for one in again.inputs] == [one.emitted[0].values[0] for one in again.inputs]
        numbers |= {change.key: change.after for change in again.changes}
        assert all(change.before is Change.missing() for change in again.changes)
    assert numbers == run.state("count")
    assert sum(numbers.values()) == len(WORDS)


def test_a_later_batch_begins_with_the_state_before_it(tmp_path: Path):
    """Replaying a later batch begins with the state that was committed before it (C35)."""
    topology = counting(Count(), [("a",)], 1)
    for generation in range(3):
        DurableWorkers(topology, tmp_path, RECORD, generation).run_batch()
    again = replay(plan_that_ran(str(tmp_path), 2), str(tmp_path), "count", 0, 2)
    assert again.changes == [Change("a", 2, 3)]
    assert again.inputs[0].emitted[0][:2] == ("default", ("a", 3))
    assert again.differences == []


def test_what_can_not_be_foreseen_differs_and_is_reported(tmp_path: Path):
    """C35: the first emit that differs with its input, and each key."""
    run = recorded(tmp_path, counting(Draws(), [("a",), ("b",)], 1))
    again = replay(run.plan, str(tmp_path), "count", 0, 0)
    first, *keys = sorted(again.differences)
    assert first.startswith("emit 1 (input 1) was ('a', 0.")
    assert [text.partition(" became")[0] for text in keys] == ["state of key 'a'", "state of key 'b'"]


def test_a_bolt_that_knows_nothing_of_state(tmp_path: Path):
    """C35: attributes that are pickled, and those that are not, because nobody asked for it."""
    run = recorded(
        tmp_path / "pickled", counting(Collects(), [("a",), ("b",)], 1, **{"topology.state.pickle": True})
    )
    again = replay(run.plan, str(tmp_path / "pickled"), "count", 0, 0)
    assert again.changes == [Change(".seen", Change.missing(), ["a", "b"])] and again.differences == []
    run = DurableWorkers(
        counting(Collects(), [("a",)], 1), tmp_path / "forgets", {**RECORD, "stormspark.exactly.once": True}
    )
    run.run_batch()
    again = replay(run.plan, str(tmp_path / "forgets"), "count", 0, 0)
    assert [one.emitted for one in again.inputs] == [[Emitted("default", (1,))]]
    assert again.inputs[0].acked and again.differences == []


def test_acks_of_later_tuples_and_what_comes_at_the_end_of_the_batch(tmp_path: Path):
    """A replay shows acks that come with later tuples, and changes at the end of the batch (C35)."""
    run = recorded(tmp_path, counting(Later(), [(n,) for n in range(3)], 1))
    again = replay(run.plan, str(tmp_path), "count", 0, 0)
    assert [one.acked for one in again.inputs] == [True, True, False]
    assert again.changes == [Change("last", Change.missing(), 0)]


def test_ticks_are_inputs(tmp_path: Path):
    """Ticks are recorded and replayed as inputs (C9)."""

    class CountsTicks(Count):
        def execute(self, tup: Any) -> None:
            self.counts["tick" if tup.is_tick else tup[0]] = True
            self.collector.ack(tup)

    run = DurableWorkers(
        counting(CountsTicks(), [("a",)], 1, **{"topology.tick.tuple.freq.secs": 1}), tmp_path, RECORD
    )
    run.clock.advance(1.5)
    run.run_batch()
    again = replay(run.plan, str(tmp_path), "count", 0, 0)
    assert sorted(one.source for one in again.inputs) == ["tick", "words[3]:default"]
    assert again.differences == []


@pytest.mark.slow
def test_batch_bolts_hear_of_their_batches(tmp_path: Path):
    """G6: what they emit when the batch is over is compared too; which attempt it was is recorded."""
    builder = TransactionalTopologyBuilder("order", "ranges", DrawnRanges(60, 20), 2)
    builder.set_bolt("partial", Partial(), 2).fields_grouping("ranges", Fields("number"))
    builder.set_committer_bolt("sums", Partial()).global_grouping("partial")
    effects = tmp_path / "effects"
    effects.mkdir()
    conf = {**RECORD, "topology.workers": 2, EFFECTS: str(effects)}
    run = DurableWorkers(builder.build_topology(), tmp_path / "table", conf)
    drawn = 0
    while drawn < 60:
        run.run_batch()
        drawn = max(end for _, _, end in read_effects(effects, "*"))
    numbers = []
    for batch in range(run.commits.last + 1):
        for component, index in (("partial", 0), ("partial", 1), ("sums", 0)):
            again = replay(run.plan, str(tmp_path / "table"), component, index, batch)
            assert again.differences == []
            if component == "sums":
                numbers += [number for emitted in again.outside for number in emitted.values[1]]
    assert sorted(numbers) == list(range(60))


def test_only_the_attempt_that_was_committed_counts(tmp_path: Path):
    """C44: inputs of one that was taken back are not replayed."""
    mark = tmp_path / "failed"

    class FailsOnce(Count):
        def execute(self, tup: Any) -> None:
            if tup[0] == "b" and not mark.exists():
                mark.touch()
                raise KeyError("once")
            super().execute(tup)

    class Replays(Script):
        def fail(self, message_id: Any) -> None:
            self.next = 0

    builder = TopologyBuilder()
    builder.set_spout("words", Replays([("a",), ("b",)], ("word",)))
    builder.set_bolt("count", FailsOnce()).fields_grouping("words", Fields("word"))
    run = DurableWorkers(builder.create_topology("counting"), tmp_path / "table", RECORD)
    run.run_batch()
    assert mark.exists() and run.state("count") == {"a": 1, "b": 1}
    again = replay(run.plan, str(tmp_path / "table"), "count", 0, 0)
    assert [one.values for one in again.inputs] == [("a",), ("b",)] and again.differences == []


def test_values_that_stay_in_their_worker_need_not_be_picklable(tmp_path: Path):
    """C8: then there is no replay of that input, and the topology does not suffer."""

    class Emits(Bolt):
        def prepare(self, conf: Any, context: Any, collector: Any) -> None:
            self.collector = collector

        def execute(self, tup: Any) -> None:
            self.collector.emit((iter([1]) if tup[0] == "a" else sys.stdout,), anchors=[tup])
            self.collector.ack(tup)

        def declare_output_fields(self, declarer: Any) -> None:
            declarer.declare(Fields("thing"))

    class Last(Count):
        def execute(self, tup: Any) -> None:
            self.collector.ack(tup)

    builder = TopologyBuilder()
    builder.set_spout("words", Script([("a",), ("b",)]))
    builder.set_bolt("emits", Emits()).shuffle_grouping("words")
    builder.set_bolt("last", Last()).shuffle_grouping("emits")
    run = recorded(tmp_path, builder.create_topology("things"), 1)
    again = replay(run.plan, str(tmp_path), "last", 0, 0)
    assert len(again.inputs) == 1
    assert len(again.differences) == 1 and again.differences[0].startswith("input 2 could not be recorded")
    assert replay(run.plan, str(tmp_path), "emits", 0, 0).differences == []


def test_a_values_change_in_place_is_not_recorded(tmp_path: Path):
    """C7: inputs are as they were before they were executed, whatever the bolt did to them."""

    class Spoils(Count):
        def execute(self, tup: Any) -> None:
            tup[0].append("spoilt")
            self.counts["length"] = len(tup[0])
            self.collector.ack(tup)

    builder = TopologyBuilder()
    builder.set_spout("lists", Script([(["a"],)]))
    builder.set_bolt("count", Spoils()).shuffle_grouping("lists")
    run = recorded(tmp_path, builder.create_topology("lists"), 1)
    assert replay(run.plan, str(tmp_path), "count", 0, 0).changes == [Change("length", Change.missing(), 2)]


@pytest.mark.slow
def test_inputs_are_kept_as_long_as_states(tmp_path: Path):
    """C36: and the plan as long as there is something to be replayed with it."""
    topology = counting(Count(), [(f"{n}",) for n in range(5)], 1)
    conf = {**RECORD, "stormspark.state.retain.txids": 2}
    for generation in range(6):
        run = DurableWorkers(topology, tmp_path, conf, generation)
        run.run_batch()
        run.commits._tidied = run.commits._forgot = -1000
        run.commits.tidy()
        run.close()
        again = replay(run.plan, str(tmp_path), "count", 0, generation)
        assert len(again.inputs) == 5 and again.differences == []
    left = sorted(InputFiles(str(tmp_path)).folder.list("inputs"))
    assert [path.partition("/")[2].split("-")[:2] for path in left] == [
        ["4", "4"],
        ["5", "5"],
        ["plan", "4"],
        ["plan", "5"],
    ]


def test_what_can_not_be_replayed_says_why(tmp_path: Path):
    """J5: in words of the user's topology."""
    run = recorded(tmp_path / "on", counting(Count()))
    location = str(tmp_path / "on")
    with pytest.raises(CheckpointError, match=r"has the batches 0 to 0, but not batch 7"):
        replay(run.plan, location, "count", 0, 7)
    with pytest.raises(CheckpointError, match=r"no component 'cuont'; it has count, words"):
        replay(run.plan, location, "cuont", 0, 0)
    with pytest.raises(CheckpointError, match=r"has 2 tasks, count\[0\] to count\[1\]"):
        replay(run.plan, location, "count", 2, 0)
    with pytest.raises(CheckpointError, match="is a spout: only bolts are recorded"):
        replay(run.plan, location, "words", 0, 0)
    off = DurableWorkers(counting(Count()), tmp_path / "off", {})
    off.run_batch()
    with pytest.raises(
        CheckpointError,
        match=r"no recorded inputs of batch 0.*stormspark.record.inputs.*no batch was recorded",
    ):
        replay(off.plan, str(tmp_path / "off"), "count", 0, 0)


def test_before_the_first_commit_nothing_can_be_replayed(tmp_path: Path):
    """J5: but a task that does not exist is named first, because no commit helps there."""
    run = DurableWorkers(counting(Count()), tmp_path / "stormspark/state", RECORD)
    arguments = ["replay", str(tmp_path), "--batch", "1", "--task"]
    said = CliRunner().invoke(main, [*arguments, "count[0]"])
    assert said.exit_code == 2 and "has no batch 1: no batch is committed yet" in said.output
    for task, mistake in (("cuont[0]", "no component 'cuont'"), ("count[9]", "no count[9]")):
        wrong = CliRunner().invoke(main, [*arguments, task])
        assert wrong.exit_code == 2 and mistake in " ".join(wrong.output.split())
    unread = CliRunner().invoke(main, ["replay", "nobody-knows", "--batch", "1", "--task", "count"])
    assert "component[index]" in unread.output
    run.run_batch()
    late = CliRunner().invoke(main, [*arguments, "cuont[0]"])
    assert late.exit_code == 2 and "no component 'cuont'" in late.output


TOPOLOGY = """
from stormspark import Fields, TopologyBuilder
from tests.unit.worker.components import Script
from tests.unit.worker.test_durable_state import Count

class Corrected(Count):
    def execute(self, tup):
        self.counts[tup[0]] = self.counts.get(tup[0], 0) + 10
        self.collector.ack(tup)

def build():
    builder = TopologyBuilder()
    builder.set_spout("words", Script([], ("word",)))
    builder.set_bolt("count", Corrected(), 2).fields_grouping("words", Fields("word"))
    return builder.create_topology("counting")
"""


def test_the_command(tmp_path: Path):
    """C35: what ran runs again; or the file as it is now, and then the exit code says that it does something else."""
    recorded(tmp_path / "stormspark/state", counting(Count(), [("a",), ("a",)], 1))
    arguments = ["replay", str(tmp_path), "--batch", "0", "--task", "count[0]"]
    said = CliRunner().invoke(main, arguments)
    assert said.exit_code == 0, said.output
    assert "count[0], batch 0: 2 inputs, 2 emits, 2 acks, 0 fails, 1 keys changed" in said.output
    assert (
        " state  'a': nothing -> 2" in said.output
        and "The task did the same as in the recorded batch." in said.output
    )
    wrong = CliRunner().invoke(main, [*arguments[:-1], "count"])
    assert wrong.exit_code == 2 and "component[index]" in wrong.output


def test_a_corrected_file_has_the_workers_that_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where nobody sets their number, the cores that ran count, and not those of this host (A16)."""
    monkeypatch.setenv(
        "PYTHONPATH", os.environ.get("PYTHONPATH", "")
    )  # the folder of a file comes on the path
    folder = tmp_path / "stormspark/state"
    run = DurableWorkers(counting(Count(), [("a",), ("b",)], 6), folder, RECORD, cores=5)
    run.run_batch()
    (tmp_path / "corrected.py").write_text(TOPOLOGY.replace("Corrected(), 2)", "Corrected(), 6)"))
    plans: list[Any] = []

    def replayed(plan: Any, *rest: Any) -> Any:
        plans.append(plan)
        return replay(run.plan, *rest)

    monkeypatch.setattr("stormspark.cli.replay.replay", replayed)
    arguments = [
        "replay",
        str(tmp_path),
        str(tmp_path / "corrected.py"),
        "--batch",
        "0",
        "--task",
        "count[0]",
    ]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    assert run.plan.workers == plans[0].workers == 5


@pytest.mark.slow
def test_the_command_with_a_corrected_file(tmp_path: Path):
    """`stormspark replay` runs a batch with the corrected file, prints the differences and exits with 1 (C35)."""
    recorded(tmp_path / "stormspark/state", counting(Count(), [("a",), ("b",)], 2))
    (tmp_path / "corrected.py").write_text(TOPOLOGY)
    command = [
        sys.executable,
        "-m",
        "stormspark.cli",
        "replay",
        str(tmp_path),
        str(tmp_path / "corrected.py"),
    ]
    said = {}
    for index in range(2):
        done = subprocess.run(
            [*command, "--batch", "0", "--task", f"count[{index}]"],
            capture_output=True,
            text=True,
            check=False,
        )
        said[index] = done.stdout, done.returncode, done.stderr
    assert any(
        code == 1 and "became 1, and becomes 10" in text and "1 were recorded, and there are 0" in text
        for text, code, _ in said.values()
    ), said


@pytest.mark.slow
def test_the_debugger_stops_at_the_first_execute(tmp_path: Path):
    """J25: in the user's own code."""
    recorded(tmp_path / "stormspark/state", counting(Count(), [("a",), ("a",)], 1))
    done = subprocess.run(
        [sys.executable, "-m", "stormspark.cli", "replay", str(tmp_path), "--batch", "0", "--task", "count[0]", "--pdb"],
        input="p tup.values\nc\n",
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert "test_durable_state.py" in done.stdout and "def execute(self, tup" in done.stdout, done.stdout
    assert "('a',)" in done.stdout
    assert "The task did the same as in the recorded batch." in done.stdout and done.returncode == 0, (
        done.stderr
    )


def test_recording_needs_no_more_than_plain_pickles():
    """C8: the plan can be read by another Python process."""
    assert pickle.loads(pickle.dumps(Emitted("default", (1,)))) == Emitted("default", (1,))


@pytest.mark.slow
def test_a_namesake_in_the_working_directory_is_not_the_module_that_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """`python -m` puts the working directory first on the module path."""
    project, elsewhere, table = (tmp_path / name for name in ("project", "elsewhere", "table"))
    for folder, text in (
        (project, "from tests.unit.worker.test_replay import Count\nclass Own(Count): pass\n"),
        (elsewhere, "raise ImportError('the wrong own_count.py')\n"),
    ):
        folder.mkdir()
        (folder / "own_count.py").write_text(text)
    monkeypatch.syspath_prepend(project)
    recorded(table, counting(importlib.import_module("own_count").Own()))
    code = (
        f"from stormspark.worker.replays.replay import plan_that_ran, replay\n"
        f"print(replay(plan_that_ran({str(table)!r}, 0), {str(table)!r}, 'count', 0, 0).differences)\n"
    )
    (elsewhere / "shows.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-m", "shows"], cwd=elsewhere, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
