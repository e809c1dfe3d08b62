from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.config import KNOWN_KEYS, Settings, merged, parse_assignment, unknown_keys
from stormspark.errors import InvalidTopologyError

SETTINGS = {field.metadata["key"]: field for field in fields(Settings)}


def test_defaults_are_storms():
    settings = Settings.read({})
    assert settings.workers == 1
    assert settings.message_timeout_secs == 30
    assert settings.max_spout_pending is None
    assert settings.acker_executors == 1
    assert settings.acking


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


def test_how_integers_are_hashed_is_one_of_three():
    assert Settings.read({"stormspark.fields.ints": "json"}).fields_ints == "json"
    with pytest.raises(InvalidTopologyError, match="must be 'long', 'integer' or 'json'"):
        Settings.read({"stormspark.fields.ints": "short"})


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
