"""Python values that pyarrow itself would change, or that would end the process, become no Arrow values."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from stormspark.connectors.arrow_columns import Fit
from stormspark.testing import make_tuple
from stormspark.wire.arrow_arrays import array_of

LONG = pa.int64()
PAIR = pa.struct({"a": pa.string(), "n": LONG})


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (LONG, 1.5),
        (LONG, np.float32(1.5)),
        (LONG, Decimal("1.5")),
        (pa.date32(), 1.5),
        (pa.timestamp("us"), 1.5),
        (pa.dictionary(pa.int32(), LONG), 1.5),
        (pa.list_(LONG), [1, 1.5]),
        (pa.list_(LONG, 2), np.array([1, 1.5])),
        (PAIR, {"a": "x", "n": 1.5}),
        (PAIR, ("x", 1.5)),
        (PAIR, [("a", "x"), ("n", 1.5)]),
        (pa.list_(PAIR), [{"n": 1.5}]),
        (pa.map_(pa.string(), LONG), {"a": 1.5}),
        (pa.map_(LONG, pa.string()), [(1.5, "a")]),
        (pa.map_(pa.string(), pa.string()), [("a", "b"), None]),
        (LONG, Decimal("1E+999999999")),
    ],
)
def test_a_value_that_pyarrow_mistreats_is_refused(kind: pa.DataType, value: Any) -> None:
    """A12: a number would lose its fraction, or the process would end or take hours."""
    with pytest.raises(ValueError, match=r"not a whole number|in the place of a pair|too large"):
        array_of([None, value], kind)
    why = Fit(pa.schema({"n": kind})).why_not(make_tuple((value,), fields=["n"]))
    assert why is not None and f"but the column's type is {kind}" in why


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (LONG, 2.0),
        (LONG, Decimal(2)),
        (LONG, np.int8(2)),
        (pa.float64(), 1.5),
        (pa.timestamp("us"), datetime(2026, 1, 1)),
        (pa.list_(LONG), [1, None]),
        (PAIR, {"n": 1}),
        (PAIR, ("x", 1)),
        (pa.map_(pa.string(), LONG), {"a": None}),
        (pa.map_(pa.string(), LONG), [("a", 1)]),
    ],
)
def test_other_values_are_those_of_pyarrow(kind: pa.DataType, value: Any) -> None:
    """A12: whole numbers of any class, dates, nested values."""
    assert array_of([None, value], kind).equals(pa.array([None, value], kind))


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 1e300])
def test_what_no_whole_number_can_be_is_left_to_arrow(value: float) -> None:
    with pytest.raises(pa.ArrowInvalid):
        array_of([1, value], pa.int64())
