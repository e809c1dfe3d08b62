"""Maps become dicts, whatever version of pyarrow there is."""

from __future__ import annotations

import inspect
from pathlib import Path

import pyarrow as pa
import pytest

import stormspark
from stormspark.wire.python_values import python_value, python_values, with_dicts

OF_MAPS = pa.map_(pa.string(), pa.map_(pa.string(), pa.int64()))


@pytest.mark.parametrize(
    ("kind", "pairs", "expected"),
    [
        (pa.int64(), [1, None], [1, None]),
        (OF_MAPS, [[("a", [("b", 1)])], None, []], [{"a": {"b": 1}}, None, {}]),
        (pa.list_(OF_MAPS), [[[("a", None)], None], None], [[{"a": None}, None], None]),
        (pa.large_list(OF_MAPS), [[[("a", [])]]], [[{"a": {}}]]),
        (pa.list_(OF_MAPS, 1), [[[("a", [])]], [None]], [[{"a": {}}], [None]]),
        (
            pa.struct({"m": OF_MAPS, "n": pa.int64()}),
            [{"m": [("a", [])], "n": 1}],
            [{"m": {"a": {}}, "n": 1}],
        ),
        (pa.struct({"m": OF_MAPS}), [None, {"m": None}], [None, {"m": None}]),
    ],
)
def test_a_map_is_a_dict(kind: pa.DataType, pairs: list[object], expected: list[object]) -> None:
    """D2: with what an older pyarrow returns, and with the one that is installed."""
    column = pa.array(pairs, kind)
    assert with_dicts(pairs, kind) == expected
    assert python_values(column) == expected
    assert [python_value(value) for value in column] == expected
    if "maps_as_pydicts" in inspect.signature(column.to_pylist).parameters:
        assert column.to_pylist(maps_as_pydicts="strict") == expected


def test_a_key_that_a_map_has_twice_is_an_error() -> None:
    twice = [("a", 1), ("a", 2)]
    kind = pa.map_(pa.string(), pa.int64())
    with pytest.raises(KeyError):
        python_values(pa.array([twice], kind))
    with pytest.raises(KeyError, match="a map has a key twice"):
        with_dicts([twice], kind)


def test_nobody_else_asks_pyarrow_for_dicts() -> None:
    """Only from version 20 on does pyarrow know how to make them."""
    package = Path(stormspark.__file__).parent
    asking = {
        path.name for path in package.rglob("*.py") if "maps_as_pydicts" in path.read_text(encoding="utf-8")
    }
    assert asking == {"python_values.py"}
