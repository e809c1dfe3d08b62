"""Encodes the keys of state as bytes that sort as the keys do. So all keys with the same prefix lie in one range of bytes (C35).

| keys | order |
| --- | --- |
| None, False and True, int (up to 255 bytes), float, bytes, str | Python's order within a kind; the kinds follow as listed |
| tuples of any keys | the order of their items; after the kinds above |
| anything else that can be pickled | no particular order; after all others |

Keys of different types are different keys. So 1, 1.0 and True are three keys, and an instance of a subclass (a named tuple, an
enum's member) differs from the plain value that it equals. It is the same in Storm, where an Integer is no Long. Two keys of the
last kind are equal if their pickled forms are. So equal objects must have equal fields, and every process that reads the state
must find their class in a module. Sets are rejected, because they may list equal contents in different orders.

The keys of the first two rows of the table have the form of FoundationDB's tuple layer: a byte for the type, then the value in a
form that marks its own end.
"""

from __future__ import annotations

import io
import math
import pickle
import struct
from collections.abc import Callable
from typing import Any, Final

from stormspark.errors import SerializationError

__all__ = ["decode_key", "encode_key", "prefix_range"]

_NONE: Final = 0x00
_FALSE: Final = 0x01
_TRUE: Final = 0x02
#: An int of n bytes has the code _ZERO + n, or _ZERO - n if it is negative. An int of more than 8 bytes has the code
#: _INT_HIGHEST, or _INT_LOWEST if it is negative, and its length follows.
_INT_LOWEST: Final = 0x0B
_ZERO: Final = 0x14
_INT_HIGHEST: Final = 0x1D
_FLOAT: Final = 0x21
_BYTES: Final = 0x30
_STR: Final = 0x31
_TUPLE: Final = 0x40
_PICKLED: Final = 0x50

#: Marks the end of bytes, strings, tuples and pickled keys. A zero inside them is written as zero and 0xff, which sorts behind
#: this mark.
_END: Final = b"\x00"
_ESCAPED_ZERO: Final = b"\x00\xff"


def encode_key(key: Any) -> bytes:
    r"""Encode ``key`` as bytes. The bytes of two keys of one kind (two ints, two strings, two tuples) compare as the keys do.

    Raises `SerializationError` for a key that can't be pickled, can't be hashed, or contains a set.

    >>> encode_key("word")
    b'1word\x00'
    >>> encode_key(("a", 2)) < encode_key(("a", 10)) < encode_key(("b", 1))
    True
    """
    if type(key) is str and "\x00" not in key:  # most keys
        return b"1" + key.encode("utf-8", "surrogatepass") + _END
    out = bytearray()
    _append(key, out)
    return bytes(out)


def decode_key(data: bytes, loads: Callable[[bytes], Any] = pickle.loads) -> Any:
    """Decode a key that `encode_key` has encoded. ``loads`` unpickles keys, and items of tuples, that are encoded by pickling.

    >>> decode_key(encode_key((1, b"x", None, ("y", 2.5))))
    (1, b'x', None, ('y', 2.5))
    """
    key, end = _read(data, 0, loads)
    if end != len(data):
        msg = f"{data[:40]!r} is not a key of a state: {len(data) - end} bytes follow its end"
        raise ValueError(msg)
    return key


def prefix_range(prefix: str | bytes | tuple[Any, ...]) -> tuple[bytes, bytes]:
    """Return the range of the keys that begin with ``prefix``: the lowest bytes in the range, and the lowest bytes behind it.

    A string is a prefix of strings, and bytes are a prefix of bytes. A tuple is a prefix of tuples that begin with all its items.

    >>> low, high = prefix_range("st")
    >>> [low <= encode_key(key) < high for key in ("storm", "st", "spark", b"storm", ("st",))]
    [True, True, False, False, False]
    >>> low, high = prefix_range(("user", 7))
    >>> [low <= encode_key(key) < high for key in (("user", 7), ("user", 7, "name"), ("user", 70), ("user",))]
    [True, True, False, False]
    """
    if type(prefix) not in {str, bytes, tuple}:
        msg = f"a prefix of keys must be a string, bytes or a tuple, got {prefix!r}"
        raise TypeError(msg)
    low = encode_key(prefix)[: -len(_END)]
    if type(prefix) is tuple:
        # In a key with this prefix, the next byte is the end or begins another item. No item begins with 0xff. If the next byte
        # is 0xff, the prefix's last zero belongs to an escaped zero, so the item is longer, and the key has another prefix.
        return low, low + b"\xff"
    kept = low.rstrip(b"\xff")  # never empty: no type has the code 0xff
    return low, kept[:-1] + bytes((kept[-1] + 1,))


def _append(key: Any, out: bytearray) -> None:
    kind = type(key)
    if kind is str:
        out.append(_STR)
        out += key.encode("utf-8", "surrogatepass").replace(b"\x00", _ESCAPED_ZERO) + _END
    elif kind is int and key.bit_length() <= 255 * 8:
        _append_int(key, out)
    elif kind is tuple:
        out.append(_TUPLE)
        for item in key:
            _append(item, out)
            if item is None:  # None has the same byte as the end, so this byte is escaped like a zero
                out.append(0xFF)
        out += _END
    elif kind is bytes:
        out.append(_BYTES)
        out += key.replace(b"\x00", _ESCAPED_ZERO) + _END
    elif kind is bool:
        out.append(_TRUE if key else _FALSE)
    elif key is None:
        out.append(_NONE)
    elif kind is float:
        out.append(_FLOAT)
        out += _float_bytes(key)
    else:
        out.append(_PICKLED)
        out += _pickled(key).replace(b"\x00", _ESCAPED_ZERO) + _END


def _append_int(key: int, out: bytearray) -> None:
    size = (key.bit_length() + 7) // 8
    if key >= 0:
        if size > 8:
            out += bytes((_INT_HIGHEST, size))
        else:
            out.append(_ZERO + size)
        out += key.to_bytes(size, "big")
    else:  # longer negative numbers are smaller; among equal lengths, the complement sorts as the number does
        if size > 8:
            out += bytes((_INT_LOWEST, 0xFF - size))
        else:
            out.append(_ZERO - size)
        out += (key + (1 << 8 * size) - 1).to_bytes(size, "big")


def _float_bytes(key: float) -> bytes:
    if math.isnan(key):
        key = math.nan  # there are many NaNs; they count as one key
    bits: int = struct.unpack(">Q", struct.pack(">d", key + 0.0))[0]  # + 0.0: minus zero equals zero
    return (bits ^ (0xFFFFFFFFFFFFFFFF if bits >> 63 else 1 << 63)).to_bytes(8, "big")


class _WithoutMemo(pickle.Pickler):
    """A pickler that gives equal keys equal bytes.

    With pickle's memo, a key that has the same object in two fields would get other bytes than a key that has equal objects
    there.
    """

    def __init__(self, out: io.BytesIO) -> None:
        super().__init__(out, 5)
        self.fast = True

    def persistent_id(self, thing: Any) -> None:
        if isinstance(thing, set | frozenset):
            msg = f"{thing!r} may list equal contents in different orders"
            raise TypeError(msg)


def _pickled(key: Any) -> bytes:
    out = io.BytesIO()
    try:
        hash(key)
        _WithoutMemo(out).dump(key)
    except Exception as error:
        msg = (
            f"{key!r}, of type {type(key).__qualname__}, can't be a key of a state: {error}; keys are strings, "
            "numbers, bytes, tuples of these, or objects that can be hashed and pickled and whose class is in a module"
        )
        raise SerializationError(msg) from error
    return out.getvalue()


def _read(data: bytes, at: int, loads: Callable[[bytes], Any]) -> tuple[Any, int]:
    code = data[at]
    at += 1
    if code == _STR:
        text, at = _read_until_end(data, at)
        return text.decode("utf-8", "surrogatepass"), at
    if code == _BYTES:
        return _read_until_end(data, at)
    if code == _TUPLE:
        return _read_tuple(data, at, loads)
    if code == _NONE:
        return None, at
    if code in {_FALSE, _TRUE}:
        return code == _TRUE, at
    if _INT_LOWEST <= code <= _INT_HIGHEST:
        return _read_int(data, code, at)
    if code == _FLOAT:
        bits = int.from_bytes(data[at : at + 8], "big")
        bits ^= 1 << 63 if bits >> 63 else 0xFFFFFFFFFFFFFFFF
        return struct.unpack(">d", bits.to_bytes(8, "big"))[0], at + 8
    if code == _PICKLED:
        pickled, at = _read_until_end(data, at)
        return loads(pickled), at
    msg = f"{data[:40]!r} is not a key of a state: no type has the code {code:#x}"
    raise ValueError(msg)


def _read_until_end(data: bytes, at: int) -> tuple[bytes, int]:
    end = data.index(_END, at)
    while data[end : end + 2] == _ESCAPED_ZERO:
        end = data.index(_END, end + 2)
    return data[at:end].replace(_ESCAPED_ZERO, _END), end + 1


def _read_tuple(data: bytes, at: int, loads: Callable[[bytes], Any]) -> tuple[tuple[Any, ...], int]:
    items: list[Any] = []
    while True:
        if data[at] == _NONE:
            if data[at : at + 2] != _ESCAPED_ZERO:
                return tuple(items), at + 1
            items.append(None)
            at += 2
        else:
            item, at = _read(data, at, loads)
            items.append(item)


def _read_int(data: bytes, code: int, at: int) -> tuple[int, int]:
    size = abs(code - _ZERO)
    if size > 8:
        size = data[at] if code > _ZERO else 0xFF - data[at]
        at += 1
    value = int.from_bytes(data[at : at + size], "big")
    return (value if code >= _ZERO else value - (1 << 8 * size) + 1), at + size
