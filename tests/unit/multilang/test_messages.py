"""Bytes and messages, without any process."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.api import TICK_SOURCE, Fields, TupleSource
from stormspark.errors import InvalidTopologyError
from stormspark.multilang.messages import Ack, Emit, Fail, Json, Msgpack, Sync, Unreadable, messages_for

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
def test_json_messages_arrive_whole_however_they_are_cut(said: list[Any], cuts: list[int]) -> None:
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
    """Messages in msgpack are read however their bytes are cut into pieces (I15)."""
    data = b"".join(Msgpack().encode(message) for message in said)
    assert feed_in_pieces(Msgpack(), data, cuts) == said


def test_a_tuple_is_sent_with_its_id_as_a_string() -> None:
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
def test_json_tuples_are_encoded_as_pythons_own_encoder_does(values: list[Any]) -> None:
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


@given(
    rows=st.lists(
        st.tuples(
            st.lists(
                VALUES | st.text() | st.sampled_from([_Text("x"), _Whole.SEVEN, b"x", math.nan, 10**5000]),
                max_size=2,
            ).map(tuple),
            st.sampled_from([SOURCE, TupleSource("split", 5, "words", Fields("word")), TICK_SOURCE]),
        ),
        min_size=1,
        max_size=6,
    ),
    number=st.integers(0, 10**9),
    kind=st.sampled_from([Json, Msgpack]),
)
def test_many_tuples_are_encoded_as_each_one_is(rows: list[Any], number: int, kind: Any) -> None:
    """I6, I17: numbered on, up to the first that can't be said."""
    names: list[str] = []
    said = b""
    error: Exception | None = None
    for values, source in rows:
        name = f"{'-' if source is TICK_SOURCE else ''}{number + len(names) + 1}"
        try:
            said += kind().tuple_message(name, source, values)
        except (TypeError, ValueError, OverflowError) as raised:
            error = raised
            break
        names.append(name)
    given = [(values, source, None) for values, source in rows]
    if error is not None and not names:
        with pytest.raises(type(error)):
            kind().tuple_messages(number, given)
    else:
        assert kind().tuple_messages(number, given) == (names, said)


def as_said(message: Any) -> Any:
    """A message of a bolt's child, as far as anybody looks at it, whoever has read it."""
    if isinstance(message, Emit | Ack | Fail | Sync):
        message = json.loads(json.dumps(msgspec.to_builtins(message)))
    if isinstance(message, dict) and message.get("command") in ("emit", "ack", "fail", "sync"):
        told = ("command", "id") if message["command"] in ("ack", "fail") else ("command", *_EMIT)
        return {
            key: message[key] for key in told if message.get(key) is not None and message["command"] != "sync"
        } or "sync"
    return message


_EMIT = ("tuple", "anchors", "stream", "task", "need_task_ids")
#: Fields as they should be, and as they should not.
_ANY = VALUES | st.sampled_from([[], ["1"], "1", ["1", "2"], 0, 4, 1.0, True, False, "words"])
SAID = st.fixed_dictionaries(
    {"command": st.sampled_from(["emit", "emit", "ack", "fail", "sync", "log", "no", 1])},
    optional={
        "tuple": st.lists(VALUES, max_size=3) | _ANY,
        "anchors": st.lists(st.text(), max_size=3) | _ANY,
        "id": st.text() | _ANY,
        "stream": st.none() | st.text() | _ANY,
        "task": _ANY,
        "need_task_ids": _ANY,
        "msg": VALUES,
    },
)
#: What other libraries than Python's may read in another way.
_ODD = st.sampled_from(
    [
        "1e400", "-1e400", "NaN", "-Infinity", "1E5", "1.0", "-0", "-0.0", "01", "1.", "+1", ".5", "tru", " 1 ", "[1,]",
        '"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"\x00"', '"\t"', '"\x7f"', '"\\x"', '"\\/"',
        '"é"', "\u20281", "\ufeff1",
        "18446744073709551616", "-9223372036854775809", "9" * 400, "9" * 5000, "[" * 2000 + "]" * 2000, "/* */ 1",
        "0.1234567890123456789012345", "123456789012345678901234567890.5", "{'a': 1}", '{"a": 1, "a": 2}',
    ]
)  # fmt: skip


def check_both_ways(said: bytes, cuts: list[int]) -> None:
    typed, plain = Json(), Json()
    heard, read, begin = [], [], 0
    for cut in [*sorted(cut % (len(said) + 1) for cut in cuts), len(said)]:
        heard += typed.hear(said[begin:cut])
        read += plain.feed(said[begin:cut])
        if heard and type(heard[-1]) is Unreadable:
            break  # the end of all reading
        begin = cut
    assert [as_said(message) for message in heard] == [as_said(message) for message in read]
    assert typed.unfinished == plain.unfinished


@given(
    said=st.lists(SAID, max_size=5),
    indent=st.none() | st.just(1),
    ends=st.sampled_from(["\nend\n", "\r\nend\r\n"]),
    ascii_only=st.booleans(),
    cuts=st.lists(st.integers(0), max_size=3),
)
def test_what_a_bolt_says_is_heard_as_it_is_read(
    said: list[Any], indent: int | None, ends: str, ascii_only: bool, cuts: list[int]
) -> None:
    """I7: a fast reader and Python's own make the same of it."""
    texts = [json.dumps(one, indent=indent, ensure_ascii=ascii_only) + ends for one in said]
    check_both_ways("".join(texts).encode("utf-8", "replace"), cuts)


@given(
    parts=st.lists(_ODD | VALUES.map(json.dumps), min_size=1, max_size=4),
    key=st.sampled_from(["tuple", "tuple", "anchors", "id", "more"]),
    command=st.sampled_from(["emit", "ack"]),
    noise=st.lists(st.tuples(st.integers(0), st.sampled_from([*_PIECES, b"\xff", b"\r"])), max_size=2),
    cuts=st.lists(st.integers(0), max_size=2),
)
def test_what_is_odd_or_wrong_is_heard_as_it_is_read(
    parts: list[str], key: str, command: str, noise: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    """I1, I12, W27: big integers, numbers beyond all bounds, halves of characters, and what is no JSON."""
    for value in (f"[{', '.join(parts)}]", parts[0]):
        text = f'{{"command": "{command}", "tuple": ["x"], "id": "1", "{key}": {value}}}\nend\n'
        said = text.encode("utf-8", "replace") * 2
        for place, piece in noise:
            at = place % (len(said) + 1)
            said = said[:at] + piece + said[at:]
        check_both_ways(said, cuts)


@given(
    said=st.lists(
        st.sampled_from("0123456789").map(lambda n: {"command": "ack", "id": n}) | SAID,
        min_size=1,
        max_size=8,
    ),
    first=st.sampled_from(
        [
            {"command": "ack", "id": "1"},
            {"id": "1", "command": "ack"},
            {"command": "ack", "id": "ack"},
            {"command": "ack", "id": "command"},
            {"command": "ack", "id": ""},
            {"command": "ack", "id": 'a"b'},
            {"command": "ack", "id": "é"},
        ]
    ),
    noise=st.lists(st.tuples(st.integers(0), st.sampled_from([*_PIECES, b"\xff", b"\r"])), max_size=2),
)
def test_acks_in_a_row_are_distinguished_from_all_else(
    said: list[Any], first: Any, noise: list[tuple[int, bytes]]
) -> None:
    """I7: by the ids of tuples that are open; what is none of them is heard, with all that comes after it."""
    text = b"".join(json.dumps(one).encode() + b"\nend\n" for one in said)
    for place, piece in noise:
        at = place % (len(text) + 1)
        text = text[:at] + piece + text[at:]
    quick, plain = Json(), Json()
    for messages in (quick, plain):
        messages.hear(json.dumps(first).encode() + b"\nend\n")
    ids = quick.acks(text)
    heard: list[Any] = []
    if ids is None:
        heard = quick.hear(text)
    else:
        known = [len(one) == 1 and one in "0123456789" for one in ids]
        until = known.index(False) if False in known else len(ids)
        heard = [Ack(one) for one in ids[:until]]
        if until < len(ids):
            heard += quick.hear(quick.acked(ids[until:]))
    assert [as_said(message) for message in heard] == [as_said(message) for message in plain.hear(text)]
    assert quick.unfinished == plain.unfinished


def test_acks_in_a_row_are_ids() -> None:
    """I7: once one has been heard; in the words of this child."""
    messages = Json()
    said = b'{"id": "1", "command": "ack"}\nend\n{"id": "23", "command": "ack"}\nend\n'
    assert messages.acks(said) is None
    assert messages.hear(said) == [Ack("1"), Ack("23")]
    assert messages.acks(said) == ["1", "23"] and messages.acked(["1", "23"]) == said
    assert messages.acks(said[:-1]) is None and messages.acks(b'{"id": "}\nend\n') is None
    messages.feed(b"{")
    assert messages.acks(said) is None


def test_what_a_bolt_says_mostly_is_read_into_objects() -> None:
    """I7: with the types that are looked at."""
    data = (
        b'{"command": "emit", "anchors": ["1"], "tuple": ["a", [1, 36893488147419103232]]}\nend\n'
        b'{"id": "1", "command": "ack"}\nend\n{"command": "fail", "id": "2"}\nend\n{"command": "sync"}\nend\n'
    )
    assert Json().hear(data) == [Emit(("a", [1, 2**65]), ["1"]), Ack("1"), Fail("2"), Sync()]


@given(tasks=st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=4))
def test_task_ids_are_encoded_as_a_list(tasks: list[list[int]]) -> None:
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
    """Msgpack carries bytes as values, and JSON rejects them (I15)."""
    (heard,) = Msgpack().feed(Msgpack().tuple_message("1", SOURCE, (b"\x00\xff",)))
    assert heard["tuple"] == [b"\x00\xff"]
    with pytest.raises(TypeError):
        Json().tuple_message("1", SOURCE, (b"\x00",))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_json_does_not_have_are_not_encoded(value: float) -> None:
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
        assert bad.quoted == quoted and "not JSON" in bad.why


def test_what_has_begun_is_shown() -> None:
    """I12: in the error of a child that stops in the middle."""
    messages = Json()
    assert messages.feed(b'{"command": "sync"}\nend\n{"comm') == [{"command": "sync"}]
    assert messages.unfinished == '{"comm'


def test_noise_among_msgpack_is_no_message() -> None:
    """Bytes that are no message in msgpack are not taken for one (I15)."""
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
    """The serializer has a short name, or the name of Storm's or streamparse's class (I15)."""
    assert messages_for(serializer).name == name


def test_an_unknown_serializer_is_refused() -> None:
    """An unknown serializer is rejected (I15)."""
    with pytest.raises(InvalidTopologyError, match=r"must be json or msgpack.*KryoSerializer"):
        messages_for("org.example.KryoSerializer")
