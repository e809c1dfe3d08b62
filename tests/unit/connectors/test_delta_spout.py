"""DeltaSpout without Spark: a session without Delta, and reading what Delta says of columns that changed."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from stormspark.connectors import DeltaSpout
from stormspark.connectors.delta_changes import columns_read, schema_change
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


def test_the_error_of_a_session_without_delta_names_what_to_add() -> None:
    """In one line, with the package."""
    with pytest.raises(
        UnsupportedEnvironmentError, match=r"^the Spark session has no Delta: .*io\.delta:delta-spark.*$"
    ):
        DeltaSpout("/data/t", ["n"]).stream(SimpleNamespace(readStream=Reader()))


def test_a_translator_needs_its_columns() -> None:
    """Bad input."""
    with pytest.raises(InvalidTopologyError, match="its translator needs columns"):
        DeltaSpout("/data/t", ["n"], lambda row: row)


def column(name: str, physical: str | None = None, type: Any = "long") -> dict[str, Any]:
    metadata = {} if physical is None else {"delta.columnMapping.physicalName": physical}
    return {"name": name, "type": type, "nullable": True, "metadata": metadata}


def incompatible(read: list[dict[str, Any]], data: list[dict[str, Any]]) -> str:
    schemas = [json.dumps({"type": "struct", "fields": fields}) for fields in (read, data)]
    return f"[DELTA_STREAMING_INCOMPATIBLE_X] Read schema: {schemas[0]}. Incompatible data schema: {schemas[1]}.\nmore"


def test_columns_are_followed_by_what_does_not_change_in_a_rename() -> None:
    """Also where two swap their names; whichever of the two schemas is today's."""
    nested = {"type": "struct", "fields": []}
    new = [column("a", "p2"), column("b", "p1"), column("new", "p5"), column("c", "p4", nested)]
    old = [column("a", "p1"), column("b", "p2"), column("old", "p3"), column("c", "p4")]
    said = "'a' is now called 'b', 'b' is now called 'a', 'old' is gone, 'c' was long, 'new' is new"
    now = ["a", "b", "new", "c"]
    assert schema_change(incompatible(new, old), now) == said == schema_change(incompatible(old, new), now)
    assert schema_change(incompatible(new, old), ["another", "table"]) is None


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
    assert schema_change(error, ["a"]) is None


def test_what_the_query_read_stands_in_its_plan() -> None:
    """Of the table that is asked for; a plan may be cut off."""
    plan = """
    :- ~StreamingExecutionRelation DeltaSource[file:/data/t], [n#1L, s#2, x y#33], name=<Unassigned>
    +- ~StreamingExecutionRelation DeltaSource[s3a://bucket/u], [a#4, b#5, ... 28 more fields], name=<Unassigned>
    """
    assert columns_read(plan, "/data/t") == (["n", "s", "x y"], 3)
    assert columns_read(plan, "s3a://bucket/u") == (["a", "b"], 30)
    assert columns_read(plan, "/data") is None


def failed(read: list[str], data: list[str], plan: str) -> str:
    trees = ["".join(f" -- {name}: long (nullable = true)\n" for name in names) for names in (read, data)]
    return (
        f"[DELTA_SCHEMA_CHANGED_WITH_VERSION] Detected schema change in version 2:\n"
        f"streaming source schema: root\n{trees[0]}\ndata file schema: root\n{trees[1]}\n"
        f"+- ~StreamingExecutionRelation DeltaSource[file:/t], [{plan}], name=<Unassigned>\n"
    )


@pytest.mark.parametrize(
    ("error", "now", "explained"),
    [
        # A column came while the query ran: the next one knows it.
        (failed(["n"], ["n", "m"], "n#1L"), ["n", "m"], False),
        # The query knew all columns of now, and met others: so will the next one.
        (failed(["n", "m"], ["n", "x"], "n#1L, m#2L"), ["n", "m"], True),
        (failed(["n", "m"], ["n", "x"], "n#1L, ... 1 more fields"), ["n", "m"], True),
        (failed(["n", "m"], ["n", "x"], "n#1L, ... 7 more fields"), ["n", "m"], False),
        # Another spout's table.
        (failed(["n", "m"], ["n", "x"], "a#1L"), ["a"], False),
        (failed(["n", "m"], ["n", "x"], "n#1L, m#2L").replace("file:/t]", "file:/u]"), ["n", "m"], False),
    ],
)
def test_an_error_is_explained_where_another_attempt_does_not_help(
    error: str, now: list[str], explained: bool
) -> None:
    """By the columns that the query knew, and those of now."""
    rows = SimpleNamespace(columns=now)
    reader = SimpleNamespace(load=lambda path: rows)
    spark = SimpleNamespace(read=SimpleNamespace(format=lambda name: reader))
    said = DeltaSpout("/t", ["n"]).explain_failure(error, spark)
    assert (said is not None) == explained
    if said is not None:
        assert (
            "the columns of the Delta table /t have changed: 'x' is gone, 'm' is new, in version 2." in said
        )


def test_an_error_of_another_kind_is_not_explained() -> None:
    """Then it is tried again."""
    assert DeltaSpout("/t", ["n"]).explain_failure("Connection refused", None) is None
    assert DeltaSpout("/t", ["n"]).explain_failure("[DELTA_FILE_NOT_FOUND] x", None) is None
