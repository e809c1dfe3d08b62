from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.config import (
    KNOWN_KEYS,
    Settings,
    conf_problems,
    for_component,
    merged,
    parse_assignment,
    unknown_keys,
)
from stormspark.errors import InvalidTopologyError
from stormspark.storm_keys import MAY_BE_SET_PER_COMPONENT, STORM_KEYS

SETTINGS = {field.metadata["key"]: field for field in fields(Settings)}


def test_defaults_are_storms():
    settings = Settings.read({})
    assert settings.message_timeout_secs == 30
    assert settings.max_spout_pending is None
    assert settings.acker_executors == 1
    assert settings.acking


#: Storm's defaults, and where ours is another one, why.
SHARED_DEFAULTS = {
    "topology.acker.executors": None,
    "topology.eventlogger.executors": 0,
    "topology.message.timeout.secs": 30,
    "topology.enable.message.timeouts": True,
    "topology.max.spout.pending": None,
    "topology.max.task.parallelism": None,
    "topology.tasks": None,
    "topology.debug": False,
    "topology.tick.tuple.freq.secs": None,
    "topology.error.throttle.interval.secs": 10,
    "topology.max.error.report.per.interval": 5,
    "topology.worker.shared.thread.pool.size": 4,
    "topology.executor.receive.buffer.size": 32768,
}
DIFFERENT_DEFAULTS = {
    "topology.workers": (1, None, "as many as cores, since Python computes on one core per process (A16)"),
    "topology.disable.loadaware.messaging": (
        False,
        None,
        "plain round robin unless it is said aloud (D6, W17)",
    ),
}
WITHOUT_MEANING = {
    "topology.stats.sample.rate": "counted exactly (W21)",
    "topology.skip.missing.kryo.registrations": "values are pickled",
    "topology.fall.back.on.java.serialization": "values are pickled",
    "topology.transfer.buffer.size": "no queues between threads",
    "topology.min.replication.count": "Spark ships the code",
}


@pytest.mark.parametrize("key", SHARED_DEFAULTS)
def test_defaults_are_storms_one_by_one(key):
    """A25, X65: those that both have; a message times out after 30 s."""
    assert SETTINGS[key].default == SHARED_DEFAULTS[key]


@pytest.mark.parametrize("key", DIFFERENT_DEFAULTS)
def test_some_defaults_differ_on_purpose(key):
    """A25, D6, W17: with the reason beside them."""
    storms, ours, reason = DIFFERENT_DEFAULTS[key]
    assert SETTINGS[key].default == ours != storms and reason


@pytest.mark.parametrize("key", WITHOUT_MEANING)
def test_some_defaults_have_no_meaning_here(key):
    """A25: the key is known, and advice says that it changes nothing."""
    assert key not in SETTINGS and STORM_KEYS[key].useless_because


def test_a_component_may_set_what_storm_lets_it():
    """A21, A22: and, on purpose, the interval of watermarks and hooks of its own; the user's own keys always."""
    storms = """topology.debug topology.max.spout.pending topology.max.task.parallelism topology.transactional.id
        topology.tick.tuple.freq.secs topology.sleep.spout.wait.strategy.time.ms topology.spout.wait.strategy
        topology.bolts.window.length.count topology.bolts.window.length.duration.ms
        topology.bolts.window.sliding.interval.count topology.bolts.window.sliding.interval.duration.ms
        topology.bolts.tuple.timestamp.max.lag.ms topology.bolts.message.id.field.name topology.state.provider
        topology.state.provider.config topology.bolts.late.tuple.stream""".split()
    ours = ["topology.bolts.watermark.event.interval.ms", "topology.auto.task.hooks"]
    assert sorted(MAY_BE_SET_PER_COMPONENT) == sorted([*storms, *ours])
    conf = dict.fromkeys([*storms, *ours, "mine", "topology.unknown.to.storm"], 1)
    assert for_component(conf) == conf


@pytest.mark.parametrize("key", sorted(KNOWN_KEYS - MAY_BE_SET_PER_COMPONENT))
def test_a_component_may_set_nothing_else_that_storm_knows(key):
    """A21: the rest of Storm's keys is the topology's; of ours, those that are read for each task pass."""
    of_components = key in SETTINGS and SETTINGS[key].metadata["of_components"]
    assert for_component({key: 1}) == ({key: 1} if of_components else {})
    assert not of_components or key.startswith("stormspark.") or key == "topology.state.pickle"


RIGHT: dict[str, list[Any]] = {
    "bool": [True],
    "text": ["x"],
    "texts": [["x"], []],
    "text(s)": ["x", ["x", "y"]],
    "registrations": [[{"class": "a.B"}], [{"class": "a.B", "parallelism.hint": 2}]],
    "list": [[1]],
    "map": [{"a": 1}],
    "int": [-1],
    "int>=0": [0],
    "int>0": [1],
    "number": [-0.5],
    "number>=0": [0, 0.5],
    "number>0": [0.5],
    "any": [object],
}
WRONG: dict[str, list[Any]] = {
    "bool": [1, "true"],
    "text": [1, ["x"]],
    "texts": ["x", [1]],
    "text(s)": [1, [1]],
    "registrations": [{"class": "a.B"}, ["a.B"], [{"class": 1}], [{"class": "a.B", "parallelism.hint": 0}]],
    "list": ["x"],
    "map": [[("a", 1)]],
    "int": [1.5, True, "1"],
    "int>=0": [-1, True],
    "int>0": [0, "1"],
    "number": ["1", True],
    "number>=0": [-0.5],
    "number>0": [0],
    "any": [],
}


@pytest.mark.parametrize("key", sorted(set(STORM_KEYS) - set(SETTINGS)))
def test_keys_that_only_storm_reads_have_storms_types(key):
    """J5, A24: a wrong type is refused by name, a right one and null pass."""
    kind = STORM_KEYS[key].type
    right = [value for value in RIGHT[kind] if kind != "any"]
    assert [conf_problems({key: value}) for value in [*right, None]] == [[]] * (len(right) + 1)
    for value in WRONG[kind]:
        (problem,) = conf_problems({key: value})
        assert problem.startswith(f"{key} must be ") and problem.endswith(f"of type {type(value).__name__}")


def test_null_means_the_default():
    assert Settings.read({"topology.workers": None, "topology.acker.executors": None}) == Settings()


def test_no_timeouts_where_they_are_off():
    assert Settings.read({"topology.enable.message.timeouts": False}).timeout_secs is None
    assert Settings.read({"topology.message.timeout.secs": 5}).timeout_secs == 5


@pytest.mark.parametrize("key", SETTINGS)
def test_a_wrong_type_is_refused_by_name(key):
    wrong = 1 if str in SETTINGS[key].metadata["types"] else "many"
    with pytest.raises(
        InvalidTopologyError, match=rf"{key} must be .*, got {wrong!r} of type {type(wrong).__name__}"
    ):
        Settings.read({key: wrong})


@pytest.mark.parametrize(
    "key", [key for key, field in SETTINGS.items() if field.metadata["least"] is not None]
)
def test_too_small_a_value_is_refused_by_name(key):
    least = SETTINGS[key].metadata["least"]
    with pytest.raises(InvalidTopologyError, match=f"{key} must be at least {least}, got -1"):
        Settings.read({key: -1})


@pytest.mark.parametrize("key", ["topology.workers", "topology.max.spout.pending"])
def test_a_truth_value_is_no_number(key):
    with pytest.raises(InvalidTopologyError, match="of type bool"):
        Settings.read({key: True})


def test_a_number_is_no_truth_value():
    with pytest.raises(InvalidTopologyError, match=r"topology\.debug must be bool"):
        Settings.read({"topology.debug": 1})


@pytest.mark.parametrize("key", [key for key, field in SETTINGS.items() if field.metadata["one_of"]])
def test_a_word_that_there_is_not_is_refused_with_those_that_there_are(key):
    words = SETTINGS[key].metadata["one_of"]
    assert [conf_problems({key: word}) for word in words] == [[]] * len(words)
    with pytest.raises(
        InvalidTopologyError, match=rf"^{key} must be '{words[0]}'.* or '{words[-1]}'.*, got 'exactly'$"
    ):
        Settings.read({key: "exactly"})


def test_settings_that_take_one_of_a_list_of_words():
    """These settings, and no others, take one of a fixed list of words (C43, D3, X51)."""
    words = {key for key, field in SETTINGS.items() if field.metadata["one_of"]}
    assert words == {
        "stormspark.backpressure.strategy",
        "stormspark.checkpoint.in.use",
        "stormspark.executor.threads",
        "stormspark.fields.ints",
        "stormspark.log.level",
        "stormspark.state.table",
        "topology.reliability.mode",
    }


def test_a_setting_with_words_names_them_whatever_came():
    """J5: also for a value of another type."""
    with pytest.raises(
        InvalidTopologyError, match="must be 'auto', 'always' or 'never', got True of type bool"
    ):
        Settings.read({"stormspark.executor.threads": True})


def test_keys_of_older_storms_are_no_mistakes_and_come_with_a_reason():
    """A23: of 0.5 to 1.2; somebody who ports has them in old files."""
    old = """topology.ackers topology.acker.tasks topology.disable.loadaware topology.bolts.tuple.timestamp.field.name
        topology.worker.receiver.thread.count topology.receiver.buffer.size topology.disruptor.batch.size
        topology.disruptor.batch.timeout.millis topology.executor.send.buffer.size topology.disruptor.wait.strategy
        topology.disruptor.wait.timeout.millis topology.optimize topology.serializations
        topology.skip.missing.serializations topology.bolts.outgoing.overflow.buffer.enable""".split()
    assert unknown_keys(dict.fromkeys(old, 1)) == []
    assert all(STORM_KEYS[key].useless_because for key in old)


def test_the_users_own_keys_are_nobodys_business():
    assert Settings.read({"wordcount.output": object()}) == Settings()
    assert unknown_keys({"wordcount.output": 1, "topologies": 2}) == []


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("topology.wrokers", "topology.workers"),
        ("topology.max.spout.pendign", "topology.max.spout.pending"),
        ("stormspark.batch.target", "stormspark.batch.target.ms"),
        ("topology.qqqqqqqqqqqqqqqqqqqqqqqqqqqqqq", None),
    ],
)
def test_a_misspelt_key_meets_its_neighbour(misspelt, meant):
    assert unknown_keys({misspelt: 1}) == [(misspelt, meant)]


def test_every_setting_is_a_known_key():
    assert set(SETTINGS) <= KNOWN_KEYS
    assert unknown_keys(dict.fromkeys(KNOWN_KEYS)) == []


def test_later_layers_win():
    assert merged({"a": 1, "b": 1}, {"b": 2}, {}) == {"a": 1, "b": 2}


@given(
    layers=st.lists(st.dictionaries(st.sampled_from("abc"), st.integers()), max_size=4),
)
def test_merging_is_looking_from_the_top(layers):
    result = merged(*layers)
    for key in "abc":
        values = [layer[key] for layer in layers if key in layer]
        assert result.get(key) == (values[-1] if values else None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("k=2", 2),
        ("k=0.5", 0.5),
        ("k=true", True),
        ("k=null", None),
        ("k=[1, 2]", [1, 2]),
        ('k="2"', "2"),
        ("k=DEBUG", "DEBUG"),
        ("k=", ""),
        ("k=a=b", "a=b"),
        (" k =/tmp/x", "/tmp/x"),
    ],
)
def test_assignments_are_json_where_they_can_be(text, value):
    assert parse_assignment(text) == ("k", value)


@pytest.mark.parametrize("text", ["", "k", "=2", "  =2"])
def test_what_is_no_assignment_is_refused(text):
    with pytest.raises(InvalidTopologyError, match="expected key=value"):
        parse_assignment(text)


def test_the_low_water_mark_is_half_of_the_high_one_unless_it_is_given() -> None:
    """One key is enough to change both; marks in the wrong order are refused when the topology is planned."""
    assert Settings.read({"stormspark.queue.high.mark.tuples": 1000}).tuple_marks == (1000, 500)
    assert Settings.read({"stormspark.queue.low.mark.bytes": 7}).byte_marks == (100 * 1024 * 1024, 7)
    with pytest.raises(InvalidTopologyError, match=r"low\.mark\.tuples must be below .*, got 10 and 10"):
        Settings.read({"stormspark.queue.high.mark.tuples": 10, "stormspark.queue.low.mark.tuples": 10})


@pytest.mark.parametrize(
    ("conf", "tuples", "bytes_"),
    [
        ({}, (1_000_000, 500_000), (104_857_600, 52_428_800)),
        ({"heron.streammgr.network.backpressure.highwatermark.mb": 50}, None, (52_428_800, 26_214_400)),
        (
            {
                "heron.streammgr.network.backpressure.highwatermark.mb": 50,
                "heron.streammgr.network.backpressure.lowwatermark.mb": 30,
            },
            None,
            (52_428_800, 31_457_280),
        ),
        ({"backpressure.disruptor.high.watermark": 0.5}, (16_384, 8_192), None),
        (
            {
                "topology.executor.receive.buffer.size": 1024,
                "backpressure.disruptor.high.watermark": 0.9,
                "backpressure.disruptor.low.watermark": 0.4,
            },
            (921, 409),
            None,
        ),
        ({"backpressure.disruptor.low.watermark": 0.4}, (29_491, 13_107), None),
        (
            {"topology.backpressure.water.mark.high": 0.8, "topology.backpressure.water.mark.low": 0.2},
            (26_214, 6_553),
            None,
        ),
        (
            {"stormspark.queue.high.mark.tuples": 70, "backpressure.disruptor.high.watermark": 0.9},
            (70, 35),
            None,
        ),
        (
            {
                "stormspark.queue.low.mark.bytes": 7,
                "heron.streammgr.network.backpressure.highwatermark.mb": 50,
            },
            None,
            (104_857_600, 7),
        ),
    ],
)
def test_marks_in_the_words_of_storm_jstorm_and_heron(
    conf: dict[str, object], tuples: tuple[int, int] | None, bytes_: tuple[int, int] | None
) -> None:
    """F7, F9, F13: shares of an executor's queue, megabytes; ours count before them."""
    settings = Settings.read(conf)
    assert settings.tuple_marks == (tuples or (1_000_000, 500_000))
    assert settings.byte_marks == (bytes_ or (104_857_600, 52_428_800))


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        (
            {"stormspark.queue.high.mark.bytes": 5, "stormspark.queue.low.mark.bytes": 104_857_600},
            "stormspark.queue.low.mark.bytes must be below stormspark.queue.high.mark.bytes, got 104857600 and 5",
        ),
        (
            {"heron.streammgr.network.backpressure.lowwatermark.mb": 100},
            "heron.streammgr.network.backpressure.lowwatermark.mb must be below heron.*highwatermark.mb, got 100 and 100",
        ),
        (
            {"backpressure.disruptor.high.watermark": 0.3, "backpressure.disruptor.low.watermark": 0.4},
            "backpressure.disruptor.low.watermark must be below backpressure.disruptor.high.*, got 0.4 and 0.3",
        ),
        (
            {"backpressure.disruptor.high.watermark": "0.9"},
            "backpressure.disruptor.high.watermark must be int or float, got '0.9' of type str",
        ),
        (
            {"stormspark.backpressure.strategy": "ignore"},
            "stormspark.backpressure.strategy must be 'slow', 'drop' or 'fail'",
        ),
    ],
)
def test_marks_that_make_no_sense_are_refused_in_the_words_they_were_given_in(
    conf: dict[str, object], message: str
) -> None:
    """F7, F9, X51, J5: the error names the keys that stand in the configuration."""
    with pytest.raises(InvalidTopologyError, match=message):
        Settings.read(conf)


def test_what_a_worker_sends_in_a_round_is_not_bounded_by_marks_of_a_queue() -> None:
    """F7, X51: Storm 1's queue of 1,024 tuples is of one task, and so is a mark at which tuples are shed."""
    assert Settings.read({"backpressure.disruptor.high.watermark": 0.03}).worker_tuple_marks[0] == 1_000_000
    own: dict[str, object] = {
        "stormspark.queue.high.mark.tuples": 1000,
        "stormspark.queue.high.mark.bytes": 1000,
    }
    slow, drop = (Settings.read({**own, "stormspark.backpressure.strategy": s}) for s in ("slow", "drop"))
    assert (slow.worker_tuple_marks, slow.worker_byte_marks) == ((1000, 500), (1000, 500))
    assert (drop.worker_tuple_marks, drop.worker_byte_marks[0]) == ((1_000_000, 500_000), 104_857_600)
    assert drop.tuple_marks == drop.byte_marks == (1000, 500)


def test_strategies() -> None:
    """X51, F10: slowing down is the default, Heron's key says "drop", ours is heard before it."""
    heron = {"topology.droptuples.upon.backpressure": True}
    assert Settings().backpressure_strategy == "slow"
    assert Settings.read(heron).backpressure_strategy == "drop"
    assert (
        Settings.read({**heron, "stormspark.backpressure.strategy": "fail"}).backpressure_strategy == "fail"
    )
