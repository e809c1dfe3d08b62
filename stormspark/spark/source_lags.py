"""The lag of a topology's sources, from what Spark says of a query's last batch."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from stormspark.driver.source_lag import Lags, lag_between
from stormspark.plan.physical import PhysicalPlan

__all__ = ["source_lags"]


def source_lags(plan: PhysicalPlan, query: StreamingQuery | None) -> Lags:
    """Return the lag of each source spout that reads Kafka, as of the last batch.

    Spark reports sources in the order in which the query reads them: first the ticks, then the spouts. If a spout reads several
    streams, it is not known which source is whose, and nothing is returned.
    """
    progress = None if query is None else query.lastProgress
    if progress is None:
        return {}
    sources = progress["sources"][1:]
    spouts = plan.sources
    if len(sources) != len(spouts):
        return {}
    found = {
        spout.id: lag_between(_positions(source["endOffset"]), _positions(source["latestOffset"]))
        for spout, source in zip(spouts, sources, strict=True)
    }
    return {spout: lags for spout, lags in found.items() if lags}


def _positions(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return None
