"""Children in several languages as bolts and spouts: the same on every engine."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark import Bolt, Fields, Spout, TopologyBuilder
from stormspark.errors import ComponentError
from stormspark.multilang import ShellBolt, ShellSpout
from tests.conformance.components import Effects, Numbers, Record
from tests.legacy.multilang.languages import CHILDREN, OBEY, SENTENCES, SPLITTERS, resources

pytestmark = pytest.mark.slow  # processes

Run = Callable[..., Any]

WORDS = Counter(word for sentence in SENTENCES for word in sentence.split(" "))


class Texts(Spout):
    """Emits each text once, with its position for an id; again where it fails."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.effects = collector, Effects(conf, context)
        self.left = list(range(len(self.texts)))

    def next_tuple(self) -> None:
        if self.left:
            number = self.left.pop()
            self.collector.emit((self.texts[number],), message_id=number)

    def ack(self, message_id: Any) -> None:
        self.effects.write("ack", message_id)

    def fail(self, message_id: Any) -> None:
        self.effects.write("fail", message_id, self.collector.verdict.reason)
        self.left.append(message_id)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("text"))


class Orders(Bolt):
    """Makes orders for a child of numbers: the first time it sees one in ``orders``, that; else an echo."""

    def __init__(self, orders: dict[int, tuple[str, Any]]) -> None:
        self.orders = orders

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.marks = collector, Path(conf["test.effects"])

    def execute(self, tup: Any) -> None:
        number, order = tup["n"], ("echo", tup["n"])
        mark = self.marks / f"ordered-{number}.mark"
        if number in self.orders and not mark.exists():
            mark.touch()
            order = self.orders[number]
        self.collector.emit(order, anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("order", "value"))


def words_of(done: Any) -> Counter[str]:
    return Counter(one.values[0] for one in done.recorded("words"))


@pytest.mark.parametrize("language", SPLITTERS)
def test_word_count_equals_a_plain_count(run: Run, language: str, tmp_path: Path) -> None:
    """I1-I8, I16: with Storm's own storm.py and storm.js, with Node, and compiled; split and counted by children."""
    command, need = SPLITTERS[language]
    folder = resources(tmp_path / "resources", need, "storm.py")
    builder = TopologyBuilder()
    builder.set_spout("texts", Texts(SENTENCES))
    builder.set_bolt("split", ShellBolt(command, ["word"], cwd=folder), 2).shuffle_grouping("texts")
    count = ShellBolt(["python3", "count_storm.py"], ["word", "count"], cwd=folder)
    builder.set_bolt("count", count, 2).fields_grouping("split", Fields("word"))
    builder.set_bolt("counts", Record()).shuffle_grouping("count")
    done = run(builder.create_topology(f"words {language}".replace(" ", "-").replace(".", "-")))
    counts: dict[str, int] = {}
    for word, counted in (one.values for one in done.recorded("counts")):
        counts[word] = max(counts.get(word, 0), counted)
    assert counts == WORDS
    assert done.acked("texts") == Counter(range(len(SENTENCES))) and done.failed("texts") == []
    assert done.statistics.total("pending") == 0
    assert done.statistics.components["count"].executed == sum(WORDS.values())


def test_a_childs_spout_hears_of_its_trees(run: Run, tmp_path: Path) -> None:
    """I4, I5, I16: with Storm's own storm.py; what fails comes again."""
    folder = resources(tmp_path / "resources", "storm.py")
    (folder / "sentences").write_text("\n".join(SENTENCES))
    builder = TopologyBuilder()
    spout = ShellSpout(["python3", "sentences_storm.py", "sentences"], ["sentence"], cwd=folder)
    builder.set_spout("sentences", spout, 2)
    split = ShellBolt(["python3", "split_storm.py"], ["word"], cwd=folder)
    builder.set_bolt("split", split, 2).shuffle_grouping("sentences")
    builder.set_bolt("words", Record()).shuffle_grouping("split")
    done = run(builder.create_topology("child-spout"))
    assert words_of(done) == WORDS
    assert done.statistics.components["sentences"].acked == len(SENTENCES)


def echoing(orders: dict[int, tuple[str, Any]], total: int, *start: str, conf: Any = None) -> Any:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(total))
    builder.set_bolt("orders", Orders(orders)).shuffle_grouping("numbers")
    child = ShellBolt([*OBEY, *start], ["what", "n"], cwd=CHILDREN)
    declared = builder.set_bolt("child", child, 2)
    declared.shuffle_grouping("orders").add_configurations(conf or {})
    builder.set_bolt("record", Record()).shuffle_grouping("child")
    return builder.create_topology("echoing")


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (("die", 3), "ended with exit code 3"),
        (("write", "noise\n"), "sent 'noise': it is not JSON"),
        (("ack twice", 0), "acked or failed already"),
        (("emit", {"tuple": [1, 2], "stream": "none"}), "'none'"),
    ],
)
def test_a_task_whose_child_ends_restarts_alone(run: Run, order: tuple[str, Any], said: str) -> None:
    """B14, I12, W22: what it held fails, with the reason, and comes again; the others notice nothing."""
    done = run(echoing({30: order}, 100))
    recorded = Counter(one.values[1] for one in done.recorded("record"))
    # After its first ack nobody sends 30 again, unless what came of it failed with the task.
    assert set(recorded) | ({30} if order[0] == "ack twice" else set()) == set(range(100))
    child = done.statistics.components["child"]
    assert child.restarts == 1 and child.errors >= 1
    assert child.last_error is not None and said in child.last_error and "child" in child.last_error
    failed = done.failed("numbers")
    assert order[0] == "ack twice" or 30 in {fail.message for fail in failed}
    assert all("MultilangError" in fail.reason for fail in failed)
    assert done.statistics.total("pending") == 0


def test_a_child_that_never_goes_well_stops_the_topology(run: Run) -> None:
    """W22: a tuple that was sent is no success."""
    orders = dict.fromkeys(range(100), ("die", 9))
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(100, replays=100))

    class Always(Orders):
        def execute(self, tup: Any) -> None:
            self.collector.emit(("die", 9), anchors=[tup])
            self.collector.ack(tup)

    builder.set_bolt("orders", Always(orders)).shuffle_grouping("numbers")
    child = ShellBolt(OBEY, ["what", "n"], cwd=CHILDREN)
    builder.set_bolt("child", child).shuffle_grouping("orders").add_configuration(
        "stormspark.task.max.restarts.in.row", 2
    )
    with pytest.raises(ComponentError, match="ended with exit code 9") as error:
        run(builder.create_topology("hopeless"))
    assert "raised 3 times in a row" in str(error.value)


def test_a_child_that_can_not_start_stops_the_topology_and_says_why(run: Run) -> None:
    """A child process that ends at its start is an error with its bolt, exit code and last words (I2, W22)."""
    with pytest.raises(ComponentError) as error:
        run(echoing({}, 10, "exit"))
    for part in ("bolt 'child'", "ended with exit code 7", "no such library"):
        assert part in str(error.value)


def test_direct_emits_of_a_child(run: Run) -> None:
    """I9, D11: to the task that it names; the task ids are those that it was told."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(20))
    builder.set_bolt("orders", Orders({})).shuffle_grouping("numbers")

    class Ask(Orders):
        def execute(self, tup: Any) -> None:
            tasks = self.tasks
            told = {"tuple": ["direct", tup["n"]], "stream": "to one", "task": tasks[tup["n"] % 3]}
            self.collector.emit(("emit", told), anchors=[tup])
            self.collector.ack(tup)

        def prepare(self, conf: Any, context: Any, collector: Any) -> None:
            super().prepare(conf, context, collector)
            self.tasks = context.component_tasks("record")

    from stormspark.api import StreamDeclaration

    outputs = {"to one": StreamDeclaration("to one", Fields("what", "n"), direct=True)}
    builder.set_bolt("ask", Ask({})).shuffle_grouping("numbers")
    builder.set_bolt("child", ShellBolt(OBEY, outputs, cwd=CHILDREN)).shuffle_grouping("ask")
    builder.set_bolt("record", Record(), 3).direct_grouping("child", "to one")
    done = run(builder.create_topology("direct"))
    recorded = done.recorded("record")
    tasks = sorted({one.task for one in recorded})
    assert len(tasks) == 3
    for one in recorded:
        _, number = one.values
        assert one.task == tasks[number % 3]


def test_a_child_learns_how_it_is_wired(run: Run) -> None:
    """I2: groupings, targets and fields of its own streams and of those that it reads."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(1))
    builder.set_bolt("orders", Orders({0: ("setup", None)})).shuffle_grouping("numbers")
    child = ShellBolt(OBEY, {"default": ["what", "setup"], "other": ["x"]}, cwd=CHILDREN)
    builder.set_bolt("child", child, 2).fields_grouping("orders", Fields("order"))
    builder.set_bolt("record", Record()).local_or_shuffle_grouping("child")
    done = run(builder.create_topology("setup"))
    (setup,) = [json.loads(one.values[1]) for one in done.recorded("record")]
    context = setup["context"]
    assert context["componentid"] == "child"
    assert context["task->component"][str(context["taskid"])] == "child"
    assert Counter(context["task->component"].values()) == {
        "numbers": 1,
        "orders": 1,
        "child": 2,
        "record": 1,
    }
    assert context["source->stream->grouping"] == {
        "orders": {"default": {"type": "FIELDS", "fields": ["order"]}}
    }
    assert context["source->stream->fields"] == {"orders": {"default": ["order", "value"]}}
    assert context["stream->target->grouping"] == {
        "default": {"record": {"type": "LOCAL_OR_SHUFFLE"}},
        "other": {},
    }
    assert setup["conf"]["topology.name"] == "setup"


def test_ticks_reach_a_child_and_release_what_it_holds(run: Run) -> None:
    """I17, C1, C9: batches do not wait for what it holds."""
    orders = {number: ("hold", number) for number in range(50)}
    done = run(echoing(orders, 60, conf={"topology.tick.tuple.freq.secs": 1}))
    recorded = Counter(one.values for one in done.recorded("record"))
    expected = [("released", n) for n in range(50)] + [("echo", n) for n in range(50, 60)]
    assert recorded == Counter(expected)
    assert done.acked("numbers")[0] == 1


def test_in_batches_that_are_transactions(run: Run, tmp_path: Path) -> None:
    """C39, C44: a batch ends when its children are through; one whose child dies is taken back, and comes again whole."""
    conf = {"stormspark.exactly.once": True}
    done = run(echoing({}, 200), conf)
    assert Counter(one.values[1] for one in done.recorded("record")) == Counter(range(200))
    assert done.statistics.total("pending") == 0
    done = run(echoing({30: ("die", 3)}, 60), conf)
    recorded = Counter(one.values[1] for one in done.recorded("record"))
    assert set(recorded) == set(range(60))
    assert done.statistics.components["numbers"].acked >= 60
