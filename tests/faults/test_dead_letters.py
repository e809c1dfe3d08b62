"""kill -9 while dead letters are written and while they are replayed: the table is whole in the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import deltalake
import pytest

from tests.waiting import PATIENCE_SECS

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
NUMBERS = range(1, 61)
FAILED = {n for n in NUMBERS if n % 5 == 0}


def stormspark(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    more = {
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(folder),
        "LETTERS_FOLDER": str(folder),
        "STORMSPARK_BARRIERS": str(folder / "barriers"),
    }
    return subprocess.run(
        [sys.executable, "-m", "stormspark.cli", *arguments],
        cwd=ROOT,
        env=os.environ | more | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECS,
        check=False,
    )


@pytest.mark.parametrize(
    ("exactly_once", "killed_before"),
    [
        pytest.param(True, False, id="exactly once"),
        pytest.param(True, True, marks=pytest.mark.long, id="exactly once, killed before, too"),
        pytest.param(False, True, marks=pytest.mark.long, id="at least once"),
    ],
)
def test_replayed_letters_make_the_table_whole_whoever_is_killed(
    exactly_once: bool, killed_before: bool, tmp_path: Path
) -> None:
    """K4, C44: a bolt fails rows, and is repaired; the driver is killed with rows replayed, and, if ``killed_before``, also with
    its letters written.
    """
    (tmp_path / "lines").mkdir()
    (tmp_path / "barriers").mkdir()
    (tmp_path / "lines" / "a.txt").write_text("".join(f"{n}\n" for n in NUMBERS))
    checkpoint = str(tmp_path / "checkpoint")

    def run(code: int, kill_at: str | None = None, **environment: str) -> None:
        if kill_at is not None:
            (tmp_path / "barriers" / kill_at).touch()
        done = stormspark(
            tmp_path, "run", str(ROOT / "tests/faults/letters_topology.py"),
            "--master", "local[2]", "--workers", "2", "--checkpoint", checkpoint, "--trigger", "available-now",
            "-c", f"stormspark.exactly.once={json.dumps(exactly_once)}",
            **environment,
        )  # fmt: skip
        assert done.returncode == code, done.stderr[-4000:]

    def letters() -> list[dict[str, object]]:
        listed = stormspark(tmp_path, "dead-letters", "list", checkpoint, "--json", "-n", "0")
        assert listed.returncode == 0, listed.stderr
        return [json.loads(line) for line in listed.stdout.splitlines()]

    def table() -> Counter[int]:
        return Counter(deltalake.DeltaTable(tmp_path / "table").to_pyarrow_table()["n"].to_pylist())

    if killed_before:
        run(-signal.SIGKILL, "driver.letters_written")
        assert letters() == [], "the batch is not committed"
    run(3)
    # At least once, a row may have a letter of the attempt that was killed, and one of a later batch.
    given_up = Counter(int(one["row"][0]) for one in letters())  # type: ignore[index]
    assert set(given_up) == FAILED and set(table()) == set(NUMBERS) - FAILED
    if exactly_once:
        assert set(given_up.values()) == set(table().values()) == {1}

    ordered = stormspark(tmp_path, "dead-letters", "replay", checkpoint)
    assert ordered.returncode == 0 and f"{given_up.total()} rows come again" in ordered.stdout
    run(-signal.SIGKILL, "driver.before_commit" if exactly_once else "driver.batch_ends", REPAIRED="yes")
    run(0, REPAIRED="yes")
    assert set(table()) == set(NUMBERS)
    if exactly_once:
        assert set(table().values()) == {1}
    assert all(str(one["status"]).startswith("replayed in batch") for one in letters())
    ordered = stormspark(tmp_path, "dead-letters", "replay", checkpoint)
    assert "0 rows come again" in ordered.stdout and "nothing is left to replay" in ordered.stdout
