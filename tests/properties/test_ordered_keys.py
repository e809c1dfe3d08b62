"""Keys of state as bytes: what goes in comes out, and sorts as it did."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stormspark.checkpoint.ordered_keys import decode_key, encode_key, prefix_range

#: With zeros, which the form escapes, and lone surrogates.
TEXTS = st.text("a\x00\xff", max_size=3) | st.text(st.characters(), max_size=6)
INTS = (
    st.integers()
    | st.integers(-(1 << 200), 1 << 200)
    | st.sampled_from([255, 256, -255, -256, 1 << 64, 1 << 4000])
)
FLOATS = st.floats(allow_nan=False)
BYTES = st.binary(max_size=6) | st.lists(st.sampled_from([0, 1, 255]), max_size=4).map(bytes)
PLAIN = st.none() | st.booleans() | INTS | FLOATS | BYTES | TEXTS
KEYS = st.recursive(
    PLAIN | st.dates() | st.uuids(), lambda items: st.lists(items, max_size=3).map(tuple), max_leaves=6
)


def typed(key: Any) -> Any:
    """Keys of different types are different, other than in Python."""
    return (tuple, tuple(map(typed, key))) if isinstance(key, tuple) else (type(key), key)


@given(KEYS)
def test_a_key_comes_back_as_it_was(key):
    """C35: the type too."""
    assert typed(decode_key(encode_key(key))) == typed(key)


@given(KEYS, KEYS)
def test_keys_are_equal_exactly_if_their_bytes_are(one, other):
    """C35: 1, 1.0 and True are three keys."""
    assert (encode_key(one) == encode_key(other)) == (typed(one) == typed(other))


@given(
    st.sampled_from([TEXTS, BYTES, INTS.filter(lambda n: n.bit_length() < 2000), FLOATS]).flatmap(
        lambda kind: st.tuples(kind, kind)
    )
)
def test_bytes_sort_as_keys_of_one_type_do(pair):
    """Encoded keys of one type sort as the keys themselves (C35)."""
    one, other = pair
    assert (encode_key(one) < encode_key(other)) == (one < other)


@given(
    st.lists(
        st.tuples(TEXTS, INTS.filter(lambda n: n.bit_length() < 2000), st.tuples(BYTES, TEXTS)), max_size=8
    )
)
def test_bytes_sort_as_tuples_do(keys):
    """C35: nested ones too."""
    assert sorted(keys) == sorted(keys, key=encode_key)


@given(st.lists(st.none() | TEXTS, max_size=4).map(tuple), st.lists(st.none() | TEXTS, max_size=4).map(tuple))
def test_none_sorts_before_everything_and_a_prefix_before_what_it_begins(one, other):
    """Within encoded tuples, None sorts before every string, and a shorter tuple before its extensions (C35)."""
    ranked = [tuple((item is not None, item or "") for item in key) for key in (one, other)]
    assert (encode_key(one) < encode_key(other)) == (ranked[0] < ranked[1])


@given(TEXTS, KEYS, TEXTS)
def test_a_text_is_the_prefix_of_texts_alone(prefix, key, rest):
    """The range of a string prefix contains the strings that begin with it and no other key (C35)."""
    low, high = prefix_range(prefix)
    for candidate in (key, prefix + rest, prefix):
        begins = isinstance(candidate, str) and candidate.startswith(prefix)
        assert (low <= encode_key(candidate) < high) == begins


@given(BYTES, KEYS, BYTES)
def test_bytes_are_the_prefix_of_bytes_alone(prefix, key, rest):
    """The range of a bytes prefix contains the bytes that begin with it and no other key (C35)."""
    low, high = prefix_range(prefix)
    for candidate in (key, prefix + rest, prefix):
        begins = isinstance(candidate, bytes) and candidate.startswith(prefix)
        assert (low <= encode_key(candidate) < high) == begins


@given(st.lists(PLAIN, max_size=3).map(tuple), KEYS, st.lists(PLAIN, max_size=2).map(tuple))
def test_a_tuple_is_the_prefix_of_tuples_by_whole_items(prefix, key, rest):
    """The range of a tuple prefix contains the tuples whose first items are its items, and no other key (C35)."""
    low, high = prefix_range(prefix)
    for candidate in (key, prefix + rest, prefix, rest):
        begins = isinstance(candidate, tuple) and typed(candidate[: len(prefix)]) == typed(prefix)
        assert (low <= encode_key(candidate) < high) == begins


def test_all_that_is_no_number_is_one_key():
    """Every NaN encodes to the same key and decodes to NaN (C35)."""
    assert encode_key(math.nan) == encode_key(-float("nan"))
    assert math.isnan(decode_key(encode_key(math.nan)))
