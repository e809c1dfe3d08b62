"""kill -9 around the commit, where Spark writes the state table: state is as if nothing had happened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from stormspark.checkpoint import barriers as checkpoint
from stormspark.checkpoint.state_files import ORDER, SCHEMA
from tests.faults.exactly_once.test_exactly_once import ALL, ROLLBACKS, Run, running

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.slow]

BARRIERS = tuple(barrier for barrier in checkpoint.BARRIERS if barrier not in ROLLBACKS)


class TableOfSpark:
    """Read as any Delta table is; the newest entry says what was committed."""

    def __init__(self, location: Path) -> None:
        self._location = str(location)
        self.exists = False
        self.last_txid = -1

    def refresh(self) -> None:
        self.exists = DeltaTable.is_deltatable(self._location)
        if self.exists:
            newest = DeltaTable(self._location).history(1)[0]
            self.last_txid = json.loads(newest["userMetadata"])["stormspark"]["txid"]

    def as_arrow(self, component: str) -> pa.RecordBatchReader:
        """The newest row of each key."""
        rows = DeltaTable(self._location).to_pyarrow_table().to_pylist()
        newest: dict[tuple[Any, ...], dict[str, Any]] = {}
        batches = set()
        for row in rows:
            if row["component"] == component and row["kind"] == "state":
                key = tuple(row[name] for name in ORDER)
                assert (*key, row["txid"]) not in batches, f"{row} is there twice"
                batches.add((*key, row["txid"]))
                if key not in newest or newest[key]["txid"] < row["txid"]:
                    newest[key] = row
        kept = [row for row in newest.values() if row["value"] is not None]
        return pa.Table.from_pylist(kept, SCHEMA).to_reader()


@pytest.mark.skipif(
    not ALL,
    reason="CI has this table in tests/spark, and kills around the commit of the other one; `make soak-exactly-once` has it",
)
def test_killed_around_the_commit(tmp_path: Path) -> None:
    """C35, C38, C44: nothing is lost, nothing comes twice, and state comes back by way of the driver."""

    def of_spark(run: Run) -> None:
        run.table = TableOfSpark(run.folder / "checkpoint/stormspark/state")  # type: ignore[assignment]
        run.settings = {"stormspark.state.table": "spark"}

    with running(tmp_path, 2, prepare=of_spark) as run:
        for barrier in BARRIERS:
            run.kill_at(barrier)
            run.goes_on()
        run.end()
        print(f"{len(BARRIERS)} barriers, {run.drivers} drivers, {run.check():,} numbers")
