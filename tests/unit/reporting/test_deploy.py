"""The alerts and the dashboard ask for metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from stormspark.driver.source_lag import PartitionLag
from stormspark.metrics import Histogram, TaskCounters
from stormspark.reporting.families import families
from tests.parity import ROOT
from tests.unit.reporting.reported import Reported

_NAME = re.compile(r"stormspark_\w+")


def there() -> set[str]:
    """Return the names of all samples of a topology in which everything has happened."""
    running = Reported()
    spent = Histogram()
    spent.add(0.002)
    running.known_lags = {"lines": {"t": {"0": PartitionLag(90, 100)}}}
    running.report({task: TaskCounters(latency=spent) for task in (running.spout, *running.bolts)})
    found = families(running, status="ACTIVE", capacities={"count": 0.5})
    return {
        f"{one.name}{end}"
        for one in found
        for end in (("_bucket", "_sum", "_count") if one.kind == "histogram" else ("",))
    }


@pytest.mark.parametrize("file", ["prometheus/stormspark-alerts.yml", "grafana/stormspark-topology.json"])
def test_every_name_is_a_metric(file: str) -> None:
    text = (ROOT / "deploy" / file).read_text()
    asked = set(_NAME.findall(text))
    assert len(asked) > 5
    assert asked <= there()


def test_the_files_are_what_they_say() -> None:
    (group,) = yaml.safe_load(Path(ROOT, "deploy/prometheus/stormspark-alerts.yml").read_text())["groups"]
    assert all({"alert", "expr", "labels", "annotations"} <= rule.keys() for rule in group["rules"])
    dashboard = json.loads(Path(ROOT, "deploy/grafana/stormspark-topology.json").read_text())
    assert all(panel["targets"] for panel in dashboard["panels"])
