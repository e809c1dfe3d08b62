"""Bytes and messages, without any process."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.api import Fields, TupleSource
from stormspark.errors import InvalidTopologyError
from stormspark.multilang.messages import Json, Msgpack, Unreadable, messages_for

SOURCE = TupleSource("split", 4, "words", Fields("word"))
_PIECES = [b"\nend\n", b"{", b"}", b"[1,", b"2]", b'"x"', b",", b" ", b"\n", b"1", b'{"a":1}', b'"', b"end"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def feed_in_pieces(messages: Json | Msgpack, data: bytes, cuts: list[int]) -> list[Any]:
    came, begin = [], 0
    for cut in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        came += messages.feed(data[begin:cut])
        begin = cut
    return came


@given(
    said=st.lists(VALUES.map(lambda value: {"command": "emit", "tuple": [value]}), max_size=4),
    cuts=st.lists(st.integers(0)),
)
def test_json_messages_arrive_as_they_were_said_however_they_are_cut(
    said: list[Any], cuts: list[int]
) -> None:
    """I1, W27: big integers too."""
    data = b"".join(Json().encode(message) for message in said)
    assert feed_in_pieces(Json(), data, cuts) == said


@given(said=st.lists(VALUES, max_size=4), cuts=st.lists(st.integers(0)))
def test_messages_of_several_lines_and_with_white_space_are_read(said: list[Any], cuts: list[int]) -> None:
    """I1: a message may be laid out, by hand or on Windows."""
    lines = [json.dumps({"value": one}, indent=2, ensure_ascii=False).replace("\n", "\r\n") for one in said]
    data = b"".join(b" " + line.encode("utf-8", "surrogatepass") + b" \r\nend\r\n" for line in lines)
    try:
        data.decode()
    except UnicodeDecodeError:
        return  # half a surrogate pair can't be written so, only escaped
    assert feed_in_pieces(Json(), data, cuts) == [{"value": one} for one in said]


@given(
    said=st.lists(
        st.text().map(lambda text: {"command": "log", "msg": text.encode("utf-8", "replace").decode()}),
        max_size=4,
    ),
    cuts=st.lists(st.integers(0)),
)
def test_msgpack_messages_arrive_however_they_are_cut(said: list[Any], cuts: list[int]) -> None:
    """I15."""
    data = b"".join(Msgpack().encode(message) for message in said)
    assert feed_in_pieces(Msgpack(), data, cuts) == said


def test_a_tuple_is_told_with_its_id_as_a_text() -> None:
    """I6: ids are texts, since not every language has 64-bit integers."""
    for messages in (Json(), Msgpack()):
        told = messages.tuple_message(
            "17", SOURCE, ('a "word"\nend\n', 2**70 if messages.name == "JSON" else 2)
        )
        (heard,) = type(messages)().feed(told)
        assert heard == {
            "id": "17",
            "comp": "split",
            "stream": "words",
            "task": 4,
            "tuple": ['a "word"\nend\n', 2**70 if messages.name == "JSON" else 2],
        }


class _Text(str):
    __slots__ = ()


class _Whole(IntEnum):
    SEVEN = 7


@given(values=st.lists(VALUES | VALUES.map(repr).map(_Text) | st.just(_Whole.SEVEN), max_size=4))
def test_json_tuples_are_said_as_pythons_own_encoder_does(values: list[Any]) -> None:
    """I6, W27: texts and integers too, which are said without it."""
    told = {"id": "17", "comp": "split", "stream": "words", "task": 4, "tuple": values}
    said = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode(told)
    assert Json().tuple_message("17", SOURCE, values) == said.encode() + b"\nend\n"


@given(
    values=st.lists(
        VALUES
        | st.sampled_from([math.nan, -math.inf, b"x", {1, 2}, object(), 1j, {(1,): 2}, [math.nan], 10**5000]),
        max_size=3,
    )
)
def test_what_json_does_not_have_is_refused_as_by_pythons_own_encoder(values: list[Any]) -> None:
    """I15, W27: with the same words."""

    def outcome(say: Callable[[], object]) -> str:
        try:
            say()
        except (TypeError, ValueError) as error:
            return f"{type(error).__name__}: {error}"
        return "said"

    plain = json.JSONEncoder(allow_nan=False)
    assert outcome(lambda: Json().tuple_message("1", SOURCE, values)) == outcome(lambda: plain.encode(values))


@given(tasks=st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=4))
def test_task_ids_are_said_as_a_list(tasks: list[list[int]]) -> None:
    """I8: however often."""
    for messages in (Json(), Msgpack()):
        assert type(messages)().feed(b"".join(map(messages.task_ids, tasks))) == tasks


@given(pieces=st.lists(st.sampled_from(_PIECES), max_size=8))
def test_messages_end_where_a_line_says_so_and_nowhere_else(pieces: list[bytes]) -> None:
    """I1, I12: as if each text up to an ``end`` were read alone, up to the first that is none."""
    said = b"".join(pieces)
    expected: list[Any] = []
    whole = True
    for text in said.split(b"\nend\n"):
        try:
            expected.append(json.loads(text))
        except ValueError:
            whole = False
            break
    came = Json().feed(said + b"\nend\n")
    if not whole:
        assert isinstance(came.pop(), Unreadable)
    assert came == expected


def test_bytes_are_values_of_msgpack_and_not_of_json() -> None:
    """I15."""
    (heard,) = Msgpack().feed(Msgpack().tuple_message("1", SOURCE, (b"\x00\xff",)))
    assert heard["tuple"] == [b"\x00\xff"]
    with pytest.raises(TypeError):
        Json().tuple_message("1", SOURCE, (b"\x00",))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_json_does_not_have_are_not_said(value: float) -> None:
    """I15: NaN would be read by Python and by nobody else."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        Json().tuple_message("1", SOURCE, (value,))


@pytest.mark.parametrize(
    ("written", "quoted"),
    [
        (b"hello\n", "hello"),
        (b"\nhello\n", "hello"),
        (b'hello\n{"command": "sync"}\nend\n', "hello"),
        (b'{"command": \nend\n', '{"command": '),
        (b"{'command': 'sync'}\nend\n", "{'command': 'sync'}"),
        (b'{"command": "emit", "tuple": [NaN]}\nend\n', '{"command": "emit", "tuple": [NaN]}'),
        (b'{"command": "sync"} {}\nend\n', '{"command": "sync"} {}'),
        (b'{"command": "\xff"}\nend\n', '{"command": "\\xff"}'),
        (b"\nend\n", ""),
        (b"[" * 100_000 + b"\nend\n", "[" * 300 + "..."),
    ],
)
def test_what_is_no_message_is_quoted(written: bytes, quoted: str) -> None:
    """I1, I12: with the messages before it; a line of noise at once, without waiting for what may never come."""
    for before in (b"", b'{"command": "sync"}\nend\n'):
        *read, bad = Json().feed(before + written)
        assert len(read) == bool(before)
        assert isinstance(bad, Unreadable)
        assert bad.quoted == quoted and "no JSON" in bad.why


def test_what_has_begun_is_shown() -> None:
    """I12: in the error of a child that stops in the middle."""
    messages = Json()
    assert messages.feed(b'{"command": "sync"}\nend\n{"comm') == [{"command": "sync"}]
    assert messages.unfinished == '{"comm'


def test_noise_among_msgpack_is_no_message() -> None:
    """I15."""
    assert all(not isinstance(message, dict) for message in Msgpack().feed(b"hello"))
    assert isinstance(Msgpack().feed(b"\xc1")[-1], Unreadable)


@pytest.mark.parametrize(
    ("serializer", "name"),
    [
        (None, "JSON"),
        ("json", "JSON"),
        ("org.apache.storm.multilang.JsonSerializer", "JSON"),
        ("backtype.storm.multilang.JsonSerializer", "JSON"),
        ("msgpack", "msgpack"),
        ("com.parsely.storm.multilang.MessagePackSerializer", "msgpack"),
    ],
)
def test_the_serializer_is_named_as_in_storm(serializer: str | None, name: str) -> None:
    """I15."""
    assert messages_for(serializer).name == name


def test_an_unknown_serializer_is_refused() -> None:
    """I15."""
    with pytest.raises(InvalidTopologyError, match=r"must be json or msgpack.*KryoSerializer"):
        messages_for("org.example.KryoSerializer")
