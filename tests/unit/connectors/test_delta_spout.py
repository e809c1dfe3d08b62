"""DeltaSpout without Spark: a session without Delta, and reading what Delta says of columns that changed."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from stormspark.connectors import DeltaSpout
from stormspark.connectors.delta_changes import schema_change
from stormspark.errors import InvalidTopologyError, UnsupportedEnvironmentError


class Reader:
    """A reader whose load raises what a session without Delta's jars raises."""

    def format(self, name: str) -> Reader:
        return self

    def options(self, **options: Any) -> Reader:
        return self

    def load(self, path: str) -> Any:
        raise RuntimeError(
            "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta. Make sure the provider name is correct"
        )


def test_a_session_without_delta_is_told_what_to_add() -> None:
    """In one line, with the package."""
    with pytest.raises(
        UnsupportedEnvironmentError, match=r"^the Spark session has no Delta: .*io\.delta:delta-spark.*$"
    ):
        DeltaSpout("/data/t", ["n"]).stream(SimpleNamespace(readStream=Reader()))


def test_a_translator_needs_its_columns() -> None:
    """Bad input."""
    with pytest.raises(InvalidTopologyError, match="give the columns"):
        DeltaSpout("/data/t", ["n"], lambda row: row)


def column(name: str, physical: str | None = None, type: Any = "long") -> dict[str, Any]:
    metadata = {} if physical is None else {"delta.columnMapping.physicalName": physical}
    return {"name": name, "type": type, "nullable": True, "metadata": metadata}


def incompatible(read: list[dict[str, Any]], data: list[dict[str, Any]]) -> str:
    schemas = [json.dumps({"type": "struct", "fields": fields}) for fields in (read, data)]
    return f"[DELTA_STREAMING_INCOMPATIBLE_X] Read schema: {schemas[0]}. Incompatible data schema: {schemas[1]}.\nmore"


def test_columns_are_followed_by_what_does_not_change_in_a_rename() -> None:
    """Also where two swap their names."""
    nested = {"type": "struct", "fields": []}
    change = schema_change(
        incompatible(
            [column("a", "p2"), column("b", "p1"), column("new", "p5"), column("c", "p4", nested)],
            [column("a", "p1"), column("b", "p2"), column("old", "p3"), column("c", "p4")],
        )
    )
    assert change is not None and change.read == ["a", "b", "new", "c"]
    assert change.text == "'a' is called 'b', 'b' is called 'a', 'old' is gone, 'c' was long, 'new' is new"


@pytest.mark.parametrize(
    "error",
    [
        "",
        "[DELTA_OTHER] no schema here",
        incompatible([column("a")], [column("b")])[:-40],
        "data file schema: root",
    ],
)
def test_a_text_without_both_schemas_says_nothing(error: str) -> None:
    """It may have been cut."""
    assert schema_change(error) is None


def test_an_error_of_another_kind_is_not_explained() -> None:
    """Then it is tried again."""
    assert DeltaSpout("/t", ["n"]).explain_failure("Connection refused", None) is None
    assert DeltaSpout("/t", ["n"]).explain_failure("[DELTA_FILE_NOT_FOUND] x", None) is None
