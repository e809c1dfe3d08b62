"""The two encodings of messages between a worker and a child process (I1, I15): JSON lines, and msgpack.

Python's own JSON encoder encodes the messages to a child. Only strings and integers, the most frequent values of tuples, have
faster encoders. msgspec decodes the most frequent messages of a bolt's child. It makes an object of each message, and checks the
types. Everything that msgspec rejects is read by Python's own JSON decoder, which has better errors. msgspec reads the same
values as Python's decoder would read, and tests check this. The library orjson is not used, because it silently turns integers
beyond 64 bits into floats, and NaN into null.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from json.encoder import encode_basestring_ascii
from typing import Any, NamedTuple, NoReturn, Protocol

import msgspec

from stormspark.api import SYSTEM_COMPONENT, TICK_STREAM, TupleSource
from stormspark.errors import InvalidTopologyError
from stormspark.spi import Given

__all__ = ["TICK", "Ack", "Emit", "Fail", "Json", "Messages", "Msgpack", "Sync", "Unreadable", "messages_for"]

#: The prefix of the ids of ticks. A tick belongs to no tree, so nobody waits for its ack (I17).
TICK = "-"

_END = b"\nend\n"
_END_TEXT = _END.decode()
#: An error quotes this many characters of an unreadable message.
_QUOTED = 300
#: A line that does not begin like JSON is rejected at once if it has fewer bytes than this.
_LONGEST_NOISE = 1000


class Unreadable(NamedTuple):
    """Output of a child that is not a message. The worker reads no further output of the child."""

    quoted: str
    why: str


class Emit(
    msgspec.Struct, tag_field="command", tag="emit", omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """The message by which a bolt's child emits a tuple (I7)."""

    values: tuple[Any, ...] = msgspec.field(name="tuple")
    anchors: list[str] | str | None = None
    stream: str | None = None
    task: Any = None
    need_task_ids: Any = None


class Ack(msgspec.Struct, tag_field="command", tag="ack", forbid_unknown_fields=True, gc=False):
    """The message by which a bolt's child acks a tuple (I7)."""

    id: str


class Fail(msgspec.Struct, tag_field="command", tag="fail", forbid_unknown_fields=True, gc=False):
    """The message by which a bolt's child fails a tuple (I7)."""

    id: str


class Sync(msgspec.Struct, tag_field="command", tag="sync", forbid_unknown_fields=True, gc=False):
    """The child's answer to a heartbeat (I13)."""


class Messages(Protocol):
    """The encoding of the messages to and from one child. It turns messages into bytes, and received bytes into messages."""

    name: str

    def tuple_message(self, number: str, source: TupleSource, values: Iterable[Any]) -> bytes:
        """Encode a tuple for a bolt (I6).

        Raises TypeError, ValueError, OverflowError or RecursionError for values that can't be encoded.
        """

    def tuple_messages(self, number: int, given: Sequence[Given]) -> tuple[list[str], bytes]:
        """Encode tuples. Returns their ids and the bytes. The ids have the numbers ``number`` + 1, ``number`` + 2 and so on.

        If a tuple can't be encoded, only the tuples before it are encoded. If it is the first tuple, raises the errors of
        `tuple_message`.
        """

    def task_ids(self, tasks: list[int]) -> bytes:
        """Encode the answer to an emit (I8)."""

    def encode(self, message: Any) -> bytes:
        """Encode any other message. Raises the errors of `tuple_message`."""

    def feed(self, data: bytes) -> list[Any]:
        """Take in bytes. Return the messages that are complete now, in order. The last of them may be an `Unreadable`."""

    def hear(self, data: bytes) -> list[Any]:
        """Do the same as `feed`, for a bolt's child. The result may have objects of `Emit`, `Ack`, `Fail` and `Sync`."""

    def acks(self, data: bytes) -> list[str] | None:
        """Return the acked ids if ``data`` looks like acks and nothing else; otherwise None.

        The caller must check that each of these ids is the id of a tuple. If one is not, the caller must pass this id and all ids
        after it to `acked`, and then pass the bytes that `acked` returns to `hear`.
        """

    def acked(self, ids: list[str]) -> bytes:
        """Return the bytes from which `acks` has read these ids."""

    @property
    def unfinished(self) -> str:
        """The part of the next message that has arrived, shortened."""


class Json:
    r"""The JSON encoding: each message has one or more lines of JSON, followed by a line with only ``end`` (I1).

    >>> messages = Json()
    >>> messages.encode({"command": "next"})
    b'{"command":"next"}\nend\n'
    >>> messages.feed(b'{"command": "sync"}\nend\n{"comm'), messages.unfinished
    ([{'command': 'sync'}], '{"comm')
    >>> Json().feed(b'hello\n')
    [Unreadable(quoted='hello', why='it is not JSON')]
    """

    name = "JSON"

    def __init__(self) -> None:
        self._encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
        #: Fast encoders for values of exactly these types. All other values go to the general encoder.
        self._encoders: dict[type, Callable[[Any], str]] = {str: encode_basestring_ascii, int: int.__repr__}
        self._decoder = json.JSONDecoder(parse_constant=_no_constant)
        # The decoder's `raw_decode` does the same, but it costs one more call and turns StopIteration into another error.
        self._scan: Callable[[str, int], tuple[Any, int]] = self._decoder.scan_once  # type: ignore[attr-defined]
        self._typed = msgspec.json.Decoder(Emit | Ack | Fail | Sync).decode
        #: The bytes before and after the id in each of the child's acks. None before the first ack. Empty if the first ack had
        #: an unusual form.
        self._ack: tuple[bytes, bytes] | tuple[()] | None = None
        self._heads: dict[TupleSource, str] = {}
        # For each task id: the encoded answer to an emit that only this task received.
        self._answers: dict[int, bytes] = {}
        self._rest = bytearray()
        self._looked = 0  # no message ends before this position

    def tuple_message(self, number: str, source: TupleSource, values: Iterable[Any]) -> bytes:
        """See `Messages`."""
        head = self._heads.get(source) or self._head(source)
        encoders, encode = self._encoders, self._encode
        encoded = ",".join([encoders.get(type(value), encode)(value) for value in values])
        return f'{{"id":"{number}{head}{encoded}]}}\nend\n'.encode()

    def tuple_messages(self, number: int, given: Sequence[Given]) -> tuple[list[str], bytes]:
        """See `Messages`."""
        names: list[str] = []
        texts: list[str] = []
        encoders, encode, quoted = self._encoders, self._encode, encode_basestring_ascii
        last, head, prefix = None, "", ""
        try:
            for values, source, _ in given:
                number += 1
                if source is not last:
                    head = self._heads.get(source) or self._head(source)
                    prefix = _prefix(source)
                    last = source
                if len(values) == 1 and type(values[0]) is str:
                    encoded = quoted(values[0])
                else:
                    encoded = ",".join([encoders.get(type(value), encode)(value) for value in values])
                name = f"{prefix}{number}"
                texts.append(f'{{"id":"{name}{head}{encoded}]}}\nend\n')
                names.append(name)
        except (TypeError, ValueError, OverflowError, RecursionError):
            if not names:
                raise
        return names, "".join(texts).encode()

    def _head(self, source: TupleSource) -> str:
        """Return the part between the id and the values, which is the same for all tuples of one source."""
        origin = {"comp": source.component, "stream": source.stream, "task": source.task}
        head = self._heads[source] = f'",{self._encode(origin)[1:-1]},"tuple":['
        return head

    def task_ids(self, tasks: list[int]) -> bytes:
        """See `Messages`."""
        if len(tasks) != 1:
            return self.encode(tasks)
        answer = self._answers.get(tasks[0])
        if answer is None:
            answer = self._answers[tasks[0]] = self.encode(tasks)
        return answer

    def encode(self, message: Any) -> bytes:
        """See `Messages`."""
        return self._encode(message).encode() + _END

    def feed(self, data: bytes) -> list[Any]:
        """See `Messages`."""
        if not self._rest and data.endswith(_END):  # this is the usual case
            read = self._decode_plain(data)
            if read is not None:
                return read
        return self._framed(data, self._decode_all)

    def hear(self, data: bytes) -> list[Any]:
        """See `Messages`."""
        if not self._rest and data.endswith(_END) and b"\r" not in data:
            return self._decode_typed(data)
        return self._framed(data, self._decode_typed)

    def acks(self, data: bytes) -> list[str] | None:
        """See `Messages`. The data is split at the bytes that are the same in all acks."""
        if not self._ack or self._rest:
            return None
        begin, end = self._ack
        if not (data.startswith(begin) and data.endswith(end) and len(data) >= len(begin) + len(end)):
            return None
        try:
            return data[len(begin) : -len(end)].decode().split((end + begin).decode())
        except UnicodeDecodeError:
            return None

    def acked(self, ids: list[str]) -> bytes:
        """See `Messages`."""
        assert self._ack
        begin, end = self._ack
        return begin + (end + begin).join([name.encode() for name in ids]) + end

    def _learn_ack(self, messages: list[Any], texts: list[bytes]) -> None:
        """Find where the id is in the child's first ack. To check this, put another id there, and read the ack again."""
        for message, text in zip(messages, texts, strict=False):
            if type(message) is Ack:
                begin, id_, end = text.partition(b'"%s"' % message.id.encode())
                begin, end = begin + b'"', b'"' + end
                try:
                    known = bool(id_) and self._typed(begin + b"?" + end) == Ack("?")
                except (msgspec.DecodeError, ValueError):
                    known = False
                self._ack = (begin, end + _END) if known else ()
                return

    def _framed(self, data: bytes, decode: Callable[[bytes], list[Any]]) -> list[Any]:
        """Add ``data`` to the bytes that wait, and return the messages that are complete now."""
        rest = self._rest
        rest += data
        if b"\r" in rest:  # a raw CR can only be part of a line end, because JSON strings escape it
            rest[:] = rest.replace(b"\r\n", b"\n")
        end = rest.rfind(_END, max(0, self._looked - len(_END)))
        messages: list[Any] = []
        if end >= 0:
            complete = bytes(rest[: end + len(_END)])
            del rest[: len(complete)]
            messages = decode(complete)
            if type(messages[-1]) is Unreadable:
                return messages
        self._looked = len(rest)
        line, newline, _ = bytes(rest[:_LONGEST_NOISE]).lstrip().partition(b"\n")
        if newline and not line.startswith((b"{", b"[")):
            # The rest of the message may never arrive, so don't wait for it.
            messages.append(Unreadable(_shown(line), "it is not JSON"))
        return messages

    @property
    def unfinished(self) -> str:
        """See `Messages`."""
        return _shown(bytes(self._rest))

    def _decode_plain(self, data: bytes) -> list[Any] | None:
        """Return the messages in ``data``, which must end with an end line.

        Returns None if something is wrong, or if a message has white space around it. An end line can't be part of a message,
        because JSON strings contain no raw line feeds.
        """
        messages: list[Any] = []
        try:
            text, scan, at = data.decode(), self._scan, 0
            size = len(text)
            while at < size:
                message, at = scan(text, at)
                if not text.startswith(_END_TEXT, at):
                    return None
                at += len(_END)
                messages.append(message)
        except (StopIteration, ValueError, RecursionError):
            return None
        return messages

    def _decode_all(self, data: bytes) -> list[Any]:
        return self._decode_plain(data) or self._decode_each(data)

    def _decode_typed(self, data: bytes) -> list[Any]:
        """Return the messages in ``data``, which must end with an end line. What msgspec can read becomes a typed object."""
        texts, typed = data[: -len(_END)].split(_END), self._typed
        messages: list[Any] = []
        try:
            messages = list(map(typed, texts))
        except (msgspec.DecodeError, ValueError, RecursionError):
            pass
        else:
            if self._ack is None:
                self._learn_ack(messages, texts)
            return messages
        for text in texts:
            try:
                message = typed(text)
            except (msgspec.DecodeError, ValueError, RecursionError):
                message = self._decode(text)
            messages.append(message)
            if type(message) is Unreadable:
                break
        return messages

    def _decode_each(self, data: bytes) -> list[Any]:
        """Decode the messages in ``data`` one by one. The list ends with the first `Unreadable`."""
        messages = []
        for one in data[: -len(_END)].split(_END):
            message = self._decode(one)
            messages.append(message)
            if type(message) is Unreadable:
                break
        return messages

    def _decode(self, data: bytes) -> Any:
        try:
            return self._decoder.decode(data.decode())
        except (ValueError, RecursionError) as error:
            first, _, more = data.partition(b"\n")
            quoted = first if more and not first.lstrip().startswith((b"{", b"[")) else data
            return Unreadable(_shown(quoted), f"it is not JSON: {error}")


class Msgpack:
    """The msgpack encoding: one msgpack object after another, as with pystorm's option ``-s msgpack``.

    Values may be bytes, too. Integers have at most 64 bits. The constructor raises `InvalidTopologyError` if msgpack is not
    installed.
    """

    name = "msgpack"

    def __init__(self) -> None:
        try:
            import msgpack
        except ImportError:
            msg = "topology.multilang.serializer is msgpack, which is not installed: pip install 'stormspark[msgpack]'"
            raise InvalidTopologyError(msg) from None
        self._pack = msgpack.Packer().pack
        self._unpacker = msgpack.Unpacker(strict_map_key=False, max_buffer_size=0)

    def tuple_message(self, number: str, source: TupleSource, values: Iterable[Any]) -> bytes:
        """See `Messages`."""
        return self.encode(
            {
                "id": number,
                "comp": source.component,
                "stream": source.stream,
                "task": source.task,
                "tuple": list(values),
            }
        )

    def tuple_messages(self, number: int, given: Sequence[Given]) -> tuple[list[str], bytes]:
        """See `Messages`."""
        names: list[str] = []
        encoded: list[bytes] = []
        try:
            for values, source, _ in given:
                name = f"{_prefix(source)}{number + len(names) + 1}"
                encoded.append(self.tuple_message(name, source, values))
                names.append(name)
        except (TypeError, ValueError, OverflowError, RecursionError):
            if not names:
                raise
        return names, b"".join(encoded)

    def task_ids(self, tasks: list[int]) -> bytes:
        """See `Messages`."""
        return self.encode(tasks)

    def encode(self, message: Any) -> bytes:
        """See `Messages`."""
        packed: bytes = self._pack(message)
        return packed

    def feed(self, data: bytes) -> list[Any]:
        """See `Messages`."""
        messages: list[Any] = []
        try:
            self._unpacker.feed(data)
            messages.extend(self._unpacker)
        except Exception as error:  # msgpack's errors have no common base class
            messages.append(Unreadable(_shown(data), f"it is not msgpack: {type(error).__name__}: {error}"))
        return messages

    hear = feed

    def acks(self, data: bytes) -> list[str] | None:
        """Return None, because in msgpack no bytes mark the end of a message, so acks can't be found without decoding them."""
        return None

    def acked(self, ids: list[str]) -> bytes:
        """See `Messages`."""
        raise NotImplementedError

    @property
    def unfinished(self) -> str:
        """See `Messages`."""
        return ""  # errors show no msgpack, because people can't read it


def messages_for(serializer: str | None) -> Messages:
    """Return the encoding that ``topology.multilang.serializer`` names (I15).

    The setting is ``json``, ``msgpack``, or the name of one of Storm's or streamparse's serializer classes. Raises
    `InvalidTopologyError` for other names.

    >>> messages_for("org.apache.storm.multilang.JsonSerializer").name
    'JSON'
    """
    wanted = (serializer or "json").rpartition(".")[2].lower()
    if wanted in ("json", "jsonserializer"):
        return Json()
    if wanted in ("msgpack", "msgpackserializer", "messagepackserializer"):
        return Msgpack()
    msg = f"topology.multilang.serializer must be json or msgpack, or the class name of one of these, got {serializer!r}"
    raise InvalidTopologyError(msg)


def _prefix(source: TupleSource) -> str:
    return TICK if source.stream == TICK_STREAM and source.component == SYSTEM_COMPONENT else ""


def _no_constant(name: str) -> NoReturn:
    msg = f"{name} is not a number in JSON"
    raise ValueError(msg)


def _shown(data: bytes) -> str:
    text = data[: _QUOTED + 1].decode(errors="backslashreplace")
    return text if len(text) <= _QUOTED else text[:_QUOTED] + "..."
