"""What is said of a source whose DataFrame can't be had; real ones need Spark."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import AnalysisException

from stormspark import TopologyBuilder
from stormspark.connectors import DataFrameSpout, KafkaSpout, KafkaSpoutConfig
from stormspark.errors import InvalidTopologyError, UnsupportedEnvironmentError
from stormspark.plan import plan_topology
from stormspark.spark import sources
from stormspark.spark.sources import open_sources, require_known_end

SAYS_WHEN = "that its session has when submit is called, no later ones"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[TABLE_OR_VIEW_NOT_FOUND] The table or view `wanted` cannot be found. SQLSTATE: 42P01", True),
        ("[UNRESOLVED_ROUTINE] Cannot resolve routine `shout` on search path. SQLSTATE: 42883", True),
        ("[PATH_NOT_FOUND] Path does not exist: /data/orders. SQLSTATE: 42K03", False),
    ],
)
def test_a_view_that_is_missing_may_have_been_made_too_late(text: str, said: bool) -> None:
    def stream(spark: Any) -> Any:
        raise AnalysisException(text)

    builder = TopologyBuilder()
    builder.set_spout("numbers", DataFrameSpout(stream, ["n"]))
    plan = plan_topology(builder.create_topology("late"), {})
    with pytest.raises(InvalidTopologyError) as raised:
        open_sources(plan, MagicMock(), MagicMock())
    assert str(raised.value).startswith(f"{plan.sources[0].place}: stream raised AnalysisException: {text}")
    assert str(raised.value).endswith(SAYS_WHEN) is said


def test_before_spark_4_2_sources_of_both_kinds_have_no_common_end(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = TopologyBuilder()
    builder.set_spout("kafka", KafkaSpout(KafkaSpoutConfig("a:1", "t")))
    builder.set_spout("rows", DataFrameSpout(lambda spark: spark.readStream.format("rate").load(), ["n"]))
    both = plan_topology(builder.create_topology("both"))
    monkeypatch.setattr(sources, "TELLS_STARTS", True)
    require_known_end(both)
    monkeypatch.setattr(sources, "TELLS_STARTS", False)
    with pytest.raises(UnsupportedEnvironmentError, match=r"can't end .*'kafka'.* together with .*'rows'"):
        require_known_end(both)
