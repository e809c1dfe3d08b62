"""Names that people who know Storm write by habit are answered with the names that there are (W10)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stormspark import Bolt, Fields, Spout, TopologyBuilder
from stormspark.errors import InvalidTopologyError
from stormspark.java_names import meant, methods_in_java
from stormspark.testing import RecordingCollector, TestWordSpout, make_tuple
from stormspark.user_code import raised


class Numbers(Spout):
    def open(self, conf: Any, context: Any, collector: Any) -> None: ...

    def nextTuple(self) -> None: ...  # noqa: N802

    def declare_output_fields(self, declarer: Any) -> None: ...


class Split(Bolt):
    def prepare(self, conf: Any, context: Any, collector: Any) -> None: ...

    def execute(self, tup: Any) -> None: ...

    def declareOutputFields(self, declarer: Any) -> None:  # noqa: N802
        declarer.declare(Fields("word"))


class Both(Split):
    """Has the method under both names, and one calls the other; that works."""

    def declare_output_fields(self, declarer: Any) -> None:
        self.declareOutputFields(declarer)

    def cleanUpAll(self) -> None: ...  # noqa: N802 - a method of its own


def declarer() -> Any:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    return builder.set_bolt("both", Both())


@pytest.mark.parametrize(
    ("made", "name", "question"),
    [
        (TopologyBuilder, "setBolt", "did you mean set_bolt?"),
        (TopologyBuilder, "createTopology", "did you mean create_topology?"),
        (declarer, "shuffleGrouping", "did you mean shuffle_grouping?"),
        (lambda: RecordingCollector(Both()), "emitDirect", "did you mean emit_direct?"),
        (lambda: make_tuple((1,), fields=["n"]), "getInteger", "did you mean tup.values[0]?"),
        (lambda: make_tuple((1,), fields=["n"]), "getLongByField", 'did you mean tup["field"]?'),
        (
            lambda: make_tuple((1,), fields=["n"]),
            "getSourceComponent",
            "did you mean source_component, without brackets?",
        ),
        (TopologyBuilder, "somethingElse", ""),
        (object, "setBolt", ""),
        (lambda: TopologyBuilder, "setSpout", "did you mean set_spout?"),
    ],
)
def test_a_java_name_is_answered_with_the_name_here(made: Any, name: str, question: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(made(), name)
    assert meant(error.value) == question


def test_a_method_that_a_class_lacks_is_found_under_its_java_name() -> None:
    with pytest.raises(TypeError) as error:
        Numbers()  # type: ignore[abstract]
    assert meant(error.value) == "did you mean next_tuple by nextTuple?"
    assert "did you mean next_tuple by nextTuple?" in raised(error.value, Path(__file__).parent)


def test_other_errors_are_not_explained() -> None:
    for error in (ValueError("setBolt"), AttributeError("setBolt"), TypeError("no"), KeyError("setBolt")):
        assert meant(error) == ""


def test_a_method_that_nothing_calls_is_refused_where_its_component_is_declared() -> None:
    builder = TopologyBuilder()
    with pytest.raises(
        InvalidTopologyError,
        match=r"test_java_names.py:\d+: bolt 'split': nothing calls the method declareOutputFields of Split: did you mean "
        r"declare_output_fields\?",
    ):
        builder.set_bolt("split", Split())
    assert list(methods_in_java(Both())) == []
    builder.set_bolt("both", Both())
