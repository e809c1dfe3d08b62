"""How many cores there are, as far as it is known without Spark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stormspark.cores import cores_of_master, host_cores, slots


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 64),
        ({"cpu.max": "max 100000\n"}, 64),
        ({"cpu.max": "200000 100000\n"}, 2),
        ({"cpu.max": "150000 100000\n"}, 2),  # as in Java
        ({"cpu.max": "1000 100000\n"}, 1),
        ({"cpu.max": "9900000 100000\n"}, 64),
        ({"cpu.max": "nonsense"}, 64),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 64),
        ({"cpu/cpu.cfs_quota_us": "300000\n"}, 64),
    ],
)
def test_a_host_has_the_cores_that_its_container_may_use(
    files: dict[str, str], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert host_cores(tmp_path) == cores


def test_a_host_has_the_cores_that_the_process_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 7}, raising=False)
    assert host_cores(tmp_path) == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert host_cores(tmp_path) == 1, "some systems don't tell"


@pytest.mark.parametrize(
    ("master", "conf", "cores"),
    [
        (None, {}, 8),
        ("local", {}, 1),
        ("local[3]", {}, 3),
        ("local[3,4]", {}, 3),
        ("local[ 3 ]", {}, 3),
        ("local[*]", {}, 8),
        ("local[*,4]", {}, 8),
        ("local-cluster[2,3,1024]", {}, 6),
        ("local-cluster[2,3,1024]", {"spark.task.cpus": 2}, 2),
        ("local[8]", {"spark.task.cpus": "3"}, 2),
        ("local[2]", {"spark.master": "local[5]"}, 5),
        ("local[2]", {"spark.master": "spark://host:7077"}, None),
        ("spark://host:7077", {}, None),
        ("yarn", {}, None),
        ("k8s://https://host", {}, None),
    ],
)
def test_the_cores_of_a_master(master: str | None, conf: dict[str, object], cores: int | None) -> None:
    assert cores_of_master(master, conf, on_host=8) == cores


def test_a_task_that_wants_more_cores_than_there_are_counts_once() -> None:
    assert slots(2, {"spark.task.cpus": "4"}) == 1
    assert slots(2, {"spark.task.cpus": None}) == 2
