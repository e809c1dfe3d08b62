"""A column of a frame comes back as it was: the same values, of the same types (C7)."""

from __future__ import annotations

import pickle
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stormspark.worker.tuples.columns import packed, unpacked


class Name(str):
    __slots__ = ()


values = (
    st.text()
    | st.integers()
    | st.floats()
    | st.booleans()
    | st.none()
    | st.binary()
    | st.builds(Name, st.text())
    | st.sampled_from(["\x1f", "a\x1fb", "\ud800", 2**63, 2**63 - 1, -(2**63), 0.0, -0.0])
)
columns = st.lists(values, min_size=1) | st.one_of(
    *(st.lists(of, min_size=1) for of in (st.text(), st.integers(), st.floats()))
)


@given(columns)
def test_values_and_types_come_back(column: list[Any]) -> None:
    """C7, C8: also a str's subclass, big ints, -0.0, NaN, a lone surrogate, and the separator itself."""
    back = list(unpacked(pickle.loads(pickle.dumps(packed(column), 5))))
    assert list(map(repr, back)) == list(map(repr, column))
    assert list(map(type, back)) == list(map(type, column))
