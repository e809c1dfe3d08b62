"""What a `ShellBolt` and its child say to each other."""

from __future__ import annotations

import json
import logging
import math
import os
import pickle
import sys
from typing import Any

import pytest

from stormspark.api import Fields, StreamDeclaration, Tuple, TupleSource
from stormspark.errors import InvalidTopologyError, MultilangError, ReportedFailedException
from stormspark.metrics import (
    AssignableMetric,
    CombinedMetric,
    CountMetric,
    Distribution,
    MeanReducer,
    Meter,
    ReducedMetric,
)
from stormspark.multilang import ShellBolt
from stormspark.multilang.answers import AHEAD
from stormspark.testing import Emitted
from stormspark.user_line import declared_at
from tests.legacy.multilang.languages import CHILDREN, OBEY
from tests.unit.multilang.rig import Obedient, until

pytestmark = pytest.mark.slow  # each test starts a process


@pytest.fixture(params=["through the collector", "the short way"], autouse=True)
def short(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """All of this is the same both ways."""
    monkeypatch.setattr(Obedient, "short", request.param == "the short way")
    return Obedient.short


def test_a_child_emits_anchored_and_acks() -> None:
    """A child's emits are anchored, and its acks and fails arrive (I6, I7)."""
    with Obedient() as rig:
        tup = rig.do("echo", {"a": [1, None, True, 2.5, "é"]})
        assert rig.collector.emitted == [Emitted(("echo", {"a": [1, None, True, 2.5, "é"]}), anchors=(tup,))]
        assert rig.collector.acked == [tup]
        failed = rig.do("fail")
        assert rig.collector.failed == [failed]


def test_a_child_that_wants_task_ids_is_known_from_then_on() -> None:
    """I8, I14: what it says is done at once; what others say may wait for some milliseconds."""
    with Obedient() as rig:
        rig.do("echo", 1)
        assert not rig.bolt.waits_for_answer
        rig.do("emit", {"tuple": ["x", 1]})
        assert rig.bolt.waits_for_answer
        rig.do("echo", 1)
        assert rig.bolt.waits_for_answer
    assert not rig.bolt.waits_for_answer


def test_a_child_learns_its_configuration_and_its_place() -> None:
    """I2: with all that Storm tells since 0.10, except that there are no system tasks to name."""
    with Obedient(conf={"my.setting": {"deep": [1]}}) as rig:
        rig.do("setup")
        setup = json.loads(rig.last())
    assert setup["conf"]["my.setting"] == {"deep": [1]}
    assert setup["conf"]["topology.name"] == "test"
    assert setup["context"] == {
        "task->component": {"1": "obey"},
        "taskid": 1,
        "componentid": "obey",
        "stream->target->grouping": {"default": {}},
        "streams": ["default"],
        "stream->outputfields": {"default": ["what", "value"]},
        "source->stream->grouping": {},
        "source->stream->fields": {},
    }


def test_a_child_leaves_its_process_id_in_a_folder() -> None:
    """I2: the folder goes when the child does."""
    with Obedient() as rig:
        rig.do("surroundings")
        told = json.loads(rig.last())
        assert told["files"] == [str(told["pid"])] and told["pid"] == rig.pid
        rig.do("setup")
        folder = json.loads(rig.last())["pidDir"]
        assert os.path.isdir(folder)
    assert not os.path.exists(folder)


def test_a_child_gets_variables_and_a_folder(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """I3: PATH is added to the worker's own, all others are set."""
    monkeypatch.setenv("FROM_WORKER", "yes")
    monkeypatch.setenv("PATH", os.environ["PATH"])
    with Obedient(env={"MINE": "1", "PATH": "/opt/mine"}, cwd=tmp_path) as rig:
        rig.do("surroundings")
        told = json.loads(rig.last())
    assert told["cwd"] == str(tmp_path)
    assert (told["env"]["MINE"], told["env"]["FROM_WORKER"]) == ("1", "yes")
    assert told["env"]["PATH"] == os.environ["PATH"] + ":/opt/mine"


def test_a_child_does_not_get_the_module_path_of_the_workers_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """I3: it may be for another version of Python; what the topology was started with it does get."""
    for inherited in ("", "/my/modules"):
        monkeypatch.setenv("PYTHONPATH", "/of/the/worker")
        monkeypatch.setenv("STORMSPARK_INHERITED_PYTHONPATH", inherited)
        with Obedient() as rig:
            rig.do("surroundings")
            assert json.loads(rig.last())["env"].get("PYTHONPATH", "") == inherited


def test_children_start_in_the_resources_folder(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """I3: that beside the topology's file, else that which was shipped, else the file's own; a setting comes before all."""
    shipped, named = tmp_path / "resources", tmp_path / "named"
    for folder in (shipped, named):
        folder.mkdir()

    def folder_of(bolt: ShellBolt, conf: dict[str, Any]) -> str:
        with Obedient(bolt=bolt, conf=conf) as rig:
            rig.do("surroundings")
            return str(json.loads(rig.last())["cwd"])

    assert folder_of(ShellBolt(OBEY, ["what", "value"]), {}) == os.path.dirname(__file__)
    with declared_at(f"{tmp_path}/topology.yaml:7"):
        beside = ShellBolt(OBEY, ["what", "value"])
    assert folder_of(beside, {}) == str(shipped)
    monkeypatch.chdir(tmp_path)
    assert folder_of(ShellBolt(OBEY, ["what", "value"]), {}) == str(shipped)
    assert folder_of(
        ShellBolt(OBEY, ["what", "value"]), {"stormspark.multilang.resources": str(named)}
    ) == str(named)
    stays = ShellBolt(OBEY, ["what", "value"])
    stays.change_child_cwd(False)
    assert folder_of(stays, {}) == str(tmp_path)
    with pytest.raises(MultilangError, match="no such folder on this host"):
        folder_of(ShellBolt(OBEY, cwd=tmp_path / "none"), {})


def test_emits_are_answered_with_task_ids_unless_the_child_says_no() -> None:
    """I8: also where need_task_ids is null; never for a direct emit."""
    outputs = {
        "default": ["value"],
        "to one": StreamDeclaration("to one", Fields("value"), direct=True),
        "what": ["w", "v"],
    }
    with Obedient(outputs=outputs) as rig:
        rig.do("emit", {"tuple": [1]})
        rig.do("emit", {"tuple": [2], "need_task_ids": True})
        rig.do("emit", {"tuple": [3], "need_task_ids": None})
        rig.do("emit", {"tuple": [4], "need_task_ids": False})
        rig.do("emit", {"tuple": [5], "stream": "to one", "task": 4})
        rig.do("emit", {"tuple": [6], "task": 0, "need_task_ids": False})
        rig.do("emit", {"tuple": [7], "task": None, "stream": None, "need_task_ids": False})
        assert [emitted.task for emitted in rig.collector.emitted] == [None] * 4 + [4, None, None]  # I9
        rig.collector.clear()
        rig.do(
            "say", {"command": "emit", "stream": "what", "tuple": ["lists", "come"], "need_task_ids": False}
        )
        tup = rig.give("lists")
        with pytest.raises(
            MultilangError, match="wrong number of fields"
        ):  # it says so on the default stream
            rig.settle()
        assert not rig.collector.acked or rig.collector.acked[-1] is not tup


def test_task_ids_come_in_the_order_of_emits_among_new_tuples() -> None:
    """I8: a child that waits for ids gets tuples in between, and the ids in order."""
    with Obedient(conf={"topology.shellbolt.max.pending": 1000}) as rig:
        receivers = iter(range(100))
        rig.collector._receivers = []
        plain = rig.collector.emit

        def emit(*args: Any, **kwargs: Any) -> list[int]:
            plain(*args, **kwargs)
            return [next(receivers)]

        rig.collector.emit = emit  # type: ignore[method-assign]
        for _ in range(50):
            rig.give("emit", {"tuple": ["x", 0]})
        rig.settle()
        rig.do("lists")
        assert json.loads(rig.last()) == [[n] for n in range(50)]


def test_anchors_are_some_one_or_none() -> None:
    """I7: a list of ids, a single id, or nothing."""
    with Obedient() as rig:
        first, second = rig.give("hold", 1), rig.give("hold", 2)
        rig.settle()
        rig.do("emit", {"anchors": ["1", "2"], "tuple": ["both", 0], "need_task_ids": False})
        rig.do("emit", {"anchors": "2", "tuple": ["one", 0], "need_task_ids": False})
        rig.do("emit", {"anchors": None, "tuple": ["none", 0], "need_task_ids": False})
        rig.do("emit", {"anchors": [], "tuple": ["none", 0], "need_task_ids": False})
    assert [emitted.anchors for emitted in rig.collector.emitted] == [(first, second), (second,), (), ()]


def test_ticks_need_no_ack_and_may_be_acked() -> None:
    """I17: where Storm's map grows with each tick that is not acked, nothing does here."""
    for start in ((), ("ack ticks",)):
        with Obedient(*start) as rig:
            held = rig.give("hold", "kept")
            rig.settle()
            for _ in range(50):
                rig.tick()
            rig.settle()
            assert rig.collector.values() == [("released", "kept")]
            assert held in rig.collector.acked
            talk = rig.bolt._talk
            assert talk is not None and not talk._held and not talk.before_it


def test_the_levels_of_logs_are_storms(caplog: pytest.LogCaptureFixture) -> None:
    """I10: and what goes to stderr is logged too (I1)."""
    caplog.set_level(logging.DEBUG)
    with Obedient() as rig:
        for level in (0, 1, 2, 3, 4, None, 9):
            said = {"command": "log", "msg": f"level {level}"}
            rig.do("say", said if level is None else {**said, "level": level})
        rig.do("stderr", "from stderr")
        until(lambda: "from stderr" in caplog.text, lambda: rig.context.advance_time(1))
    levels = {record.getMessage(): record.levelname for record in caplog.records}
    names = ["DEBUG", "DEBUG", "INFO", "WARNING", "ERROR", "INFO", "INFO"]
    assert [levels[f"level {level}"] for level in (0, 1, 2, 3, 4, None, 9)] == names
    assert levels["stderr: from stderr"] == "INFO"


def test_an_error_is_reported_and_nothing_else() -> None:
    """An error that a child reports is recorded with the task, and the tuple is still acked (I12, C4)."""
    with Obedient() as rig:
        tup = rig.do("say", {"command": "error", "msg": "Traceback: no"})
        (error,) = rig.collector.errors
        assert error == "bolt 'obey', task 1 (obey[0]): its child reports: Traceback: no"
        assert rig.collector.acked == [tup]


def test_an_error_of_a_child_in_python_begins_with_its_line() -> None:
    """As errors of components in the worker do. Frames of Storm's library are left out."""
    frames = ["storm.py", "bolts/split.py", "storm.py"]
    traced = "".join(
        f'  File "/shop/{name}", line {at}, in f\n    x()\n' for at, name in enumerate(frames, 6)
    )
    with Obedient() as rig:
        rig.do("say", {"command": "error", "msg": f"Traceback (most recent call last):\n{traced}KeyError: 1"})
        (error,) = rig.collector.errors
    first, *_, last = str(error).splitlines()
    assert first.endswith("its child reports: /shop/bolts/split.py:7: Traceback (most recent call last):")
    assert last == "KeyError: 1"


def test_a_child_updates_metrics_that_its_component_has() -> None:
    """I11: as Storm's metrics for it do; without a value they count one."""
    clock = [0.0]
    metrics = {
        "count": CountMetric(),
        "last": AssignableMetric(),
        "largest": CombinedMetric(max, 0),
        "mean": ReducedMetric(MeanReducer()),
        "meter": Meter(lambda: clock[0]),
        "sizes": Distribution(),
    }
    said: dict[str, list[Any]] = {
        "count": [None, 4],
        "last": ["a", "b"],
        "largest": [2, 1],
        "mean": [1, 4],
        "meter": [None, 2],
        "sizes": [10],
    }
    with Obedient(metrics=metrics) as rig:
        for name, values in said.items():
            for value in values:
                rig.do("say", {"command": "metrics", "name": name, "params": value})
        read = {name: metric.get_value_and_reset() for name, metric in rig.context.metrics.items()}
    assert (read["count"], read["last"], read["largest"], read["mean"]) == (5, "b", 2, 2.5)
    assert (read["meter"]["count"], read["sizes"]["mean"]) == (3, 10)
    assert read["multilang"] is None


def test_a_metric_that_nobody_has_registered_is_kept_and_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """I11: Storm's worker dies of it."""
    with Obedient() as rig:
        for value in (1, 2):
            rig.do("say", {"command": "metrics", "name": "words", "params": value})
        assert rig.context.metrics["multilang"].get_value_and_reset() == {"words": 2}
    assert caplog.text.count("metric 'words' is not in metrics=") == 1


def test_big_integers_are_kept_exactly() -> None:
    """W27: in both directions."""
    with Obedient() as rig:
        rig.do("echo", [2**63, -(2**200), 10**18])
        assert rig.last() == [2**63, -(2**200), 10**18]


def lists_in_lists(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (float("nan"), "nan"),
        (b"\x00raw", "bytes"),
        ({1, 2}, "set"),
        (object, "type"),
        (10**5000, "a int that can't be shown"),
        (lists_in_lists(100_000), "a list that can't be shown"),
    ],
    ids=["nan", "bytes", "set", "class", "thousands of digits", "thousands of lists"],
)
def test_a_value_that_can_not_be_sent_fails_its_tuple_alone(value: Any, said: str) -> None:
    """I6, C5: its field, its type and where it came from are named, and the child goes on."""
    with Obedient() as rig:
        with pytest.raises(ReportedFailedException) as error:
            rig.give("echo", value)
        for word in ("'obey'", "task 1", "'source'", "'default'", "'value'", "JSON", said):
            assert word in str(error.value)
        rig.do("echo", 1)
        assert rig.last() == 1


def test_msgpack_has_bytes() -> None:
    """I15: and no integers beyond 64 bits, which is said."""
    source = TupleSource("source", 7, "default", Fields("order", "value"))
    bolt = ShellBolt(
        [sys.executable, str(CHILDREN / "echo_msgpack.py")], ["order", "value"], cwd=str(CHILDREN)
    )
    with Obedient(bolt=bolt, conf={"topology.multilang.serializer": "msgpack"}) as rig:
        rig.give("any", b"\x00\xff", source)
        rig.settle()
        assert rig.last() == b"\x00\xff"
        with pytest.raises(ReportedFailedException, match=r"msgpack.*'value'|'value'.*msgpack"):
            rig.give("any", 2**70)


def test_what_comes_before_a_tuple_that_can_not_be_sent_is_taken() -> None:
    """C5: and it alone raises, when it is the first."""
    source = TupleSource("source", 7, "default", Fields("order", "value"))
    for values in (("echo", b"\x00"), ("echo", math.nan), ([object()], 1)):
        with Obedient(short=True) as rig:
            tuples = [Tuple(("echo", n), source) for n in range(3)]
            given: list[Any] = [(tup.values, source, tup) for tup in tuples]
            given[2:2] = [(values, source, None)]
            assert rig.bolt.execute_all(given, 1.0) == 2
            with pytest.raises(ReportedFailedException, match="can't be sent to the child in JSON"):
                rig.bolt.execute_all(given[2:], 2.0)
            assert rig.bolt.execute_all(given[3:], 3.0) == 1
            rig.settle()
            assert rig.collector.acked == tuples


def test_what_a_child_has_is_known_with_since_when() -> None:
    """I12: it fails with the child, and a tree that has timed out can say who held it (W4)."""
    with Obedient(short=True) as rig:
        source = TupleSource("source", 7, "default", Fields("order", "value"))
        orders = ["hold", "echo", "hold", "sleep", "echo"]
        given = [((order, 0.2), source, n) for n, order in enumerate(orders)]
        rig.bolt.connected(rig._sender, lambda acked: None)
        rig.collector.emit = lambda *_: [4]  # type: ignore[method-assign]
        assert rig.bolt.execute_all(given[:2], 10.0) == 2
        assert rig.bolt.kept() == [(given[0], 10.0), (given[1], 10.0)]
        rig.settle()
        assert rig.bolt.kept() == [(given[0], 10.0)]
        assert rig.bolt.execute_all(given[2:], 20.0) == 3
        assert rig.bolt.kept() == [(given[0], 10.0), *((one, 20.0) for one in given[2:])]
        rig.settle()
        assert rig.bolt.kept() == [(given[0], 10.0), (given[2], 20.0)]


def test_answers_that_can_only_be_one_are_there_before_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """I8: from the first question on, for a child that keeps them; it waits for none, so that nobody takes it for waiting."""
    monkeypatch.setattr("stormspark.multilang.shell_bolt.keeps_answers", lambda command, folder: True)
    monkeypatch.setattr("stormspark.multilang.shell_bolt.only_answer", lambda context: [4, 5])
    with Obedient() as rig:
        rig.do("lists")
        assert json.loads(rig.last()) == []
        for n in range(1, 4):
            rig.do("emit", {"tuple": ["x", 0]})
            rig.do("lists")
            assert json.loads(rig.last()) == [[4, 5]] * (AHEAD + n)
        assert not rig.bolt.waits_for_answer


def test_no_more_tuples_are_sent_ahead_than_asked_for() -> None:
    """I14: who executes more waits; Storm bounds what is not written yet, and the child may hold any number."""
    with Obedient(conf={"topology.shellbolt.max.pending": 3}) as rig:
        assert rig.bolt.room == 3
        for n in range(10):
            rig.give("echo", n)
            assert rig.bolt.outside <= 3
        rig.settle()
        assert rig.bolt.room == 3
        assert rig.collector.values() == [("echo", n) for n in range(10)]


def test_a_child_that_holds_tuples_takes_more() -> None:
    """I14, C1: what it was given and does not ack takes no room, and no batch waits for it."""
    with Obedient(conf={"topology.shellbolt.max.pending": 3}) as rig:
        for n in range(20):
            rig.give("hold", n)
        rig.settle()
        assert not rig.collector.acked and rig.bolt.outside == 0
        rig.tick()
        rig.serve(lambda: len(rig.collector.acked) == 20)


def test_tuples_that_wait_for_the_child_are_not_late() -> None:
    """W2: their timeouts are reset four times a timeout; of those that it holds they are not."""
    with Obedient(conf={"topology.message.timeout.secs": 8}) as rig:
        held = rig.do("hold")
        waiting = rig.give("sleep", 0.3)
        rig.context.advance_time(2)
        assert rig.collector.resets == [waiting]
        rig.settle()
        rig.context.advance_time(4)
        assert rig.collector.resets == [waiting] and held not in rig.collector.acked
    with Obedient(conf={"topology.enable.message.timeouts": False}) as rig:
        rig.give("sleep", 0.2)
        rig.context.advance_time(20)
        assert not rig.collector.resets


def test_a_batch_of_tuples_is_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """W7: the child is not woken once a tuple."""
    with Obedient() as rig:
        writes: list[bytes] = []
        plain = os.write

        def write(file: int, data: bytes) -> int:
            writes.append(bytes(data))
            return plain(file, data)

        monkeypatch.setattr(os, "write", write)
        source = TupleSource("source", 7, "default", Fields("order", "value"))
        rig.execute([Tuple(("echo", n), source) for n in range(50)])
        assert not writes or rig.short
        rig.bolt.send()
        assert len(writes) == 1
        monkeypatch.undo()
        rig.settle()


def test_a_large_tuple_goes_both_ways() -> None:
    """I6: more than the pipes hold."""
    with Obedient() as rig:
        text = "é" * 3_000_000
        rig.do("echo", text)
        assert rig.last() == text


def test_json_over_several_lines_and_with_line_ends_of_windows_is_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """JSON over several lines, and with the line ends of Windows, is read (I1)."""
    caplog.set_level(logging.INFO)
    with Obedient() as rig:
        rig.do("pretty", 5)
        assert rig.collector.values() == [("pretty", 5)]
        rig.do("windows")
    assert "from Windows" in caplog.text


class Split(ShellBolt):
    def __init__(self) -> None:
        super().__init__(OBEY, cwd=CHILDREN)
        self.set_env({"MINE": "1"})

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("what", "value"))

    def get_component_configuration(self) -> dict[str, Any]:
        return {"topology.tick.tuple.freq.secs": 5}


def test_it_can_be_subclassed_as_in_storm() -> None:
    """I18: and pickled, before it is prepared."""
    bolt = pickle.loads(pickle.dumps(Split()))
    with Obedient(bolt=bolt) as rig:
        rig.do("surroundings")
        assert json.loads(rig.last())["env"]["MINE"] == "1"


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (["python3 split.py"], {}, "a command must be a list of words"),
        ([[]], {}, "a command must be a list of words"),
        ([["python3", 1]], {}, "a command must be a list of words"),
        ([["true"], "word"], {}, "outputs must be the fields of the default stream"),
        ([["true"]], {"env": {"N": 1}}, "env must map names to strings, got 'N': 1"),
    ],
)
def test_a_wrong_command_of_a_child_is_refused_with_the_users_line(
    arguments: Any, options: Any, said: str
) -> None:
    """A wrong command, output or environment is rejected, with the user's line (I3, J5)."""
    with pytest.raises(InvalidTopologyError, match=said) as error:
        ShellBolt(*arguments, **options)
    assert __file__ in str(error.value)


def test_a_childs_memory_is_no_state() -> None:
    """C43: what a child keeps can't be pickled, so nobody is made to believe it was."""
    with (
        pytest.raises(InvalidTopologyError, match=r"topology\.state\.pickle"),
        Obedient(conf={"topology.state.pickle": True}),
    ):
        pass
