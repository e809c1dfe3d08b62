"""Where the kernel limits a process's memory, and where it counts whom it has killed: both versions of control groups."""

from pathlib import Path

import pytest

from stormspark.worker.host.memory_limits import MemoryAtEnd, limit_of

GB = 1 << 30


def written(root: Path, files: dict[str, object]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{content}\n")


@pytest.mark.parametrize(
    ("of_process", "files", "limit", "counter"),
    [
        (
            "0::/pod/me",
            {"pod/me/memory.max": "max", "pod/memory.max": GB, "memory.max": "max"},
            GB,
            "pod/memory.events",
        ),
        ("0::/pod/me", {"pod/me/memory.max": GB, "pod/memory.max": 2 * GB}, GB, "pod/me/memory.events"),
        ("0::/", {"memory.max": GB}, GB, "memory.events"),
        ("0::/of/the/host", {"memory.max": GB}, GB, "memory.events"),
        (
            "4:memory:/pod\n3:cpu:/\n0::/",
            {"memory/pod/memory.limit_in_bytes": GB, "memory/memory.limit_in_bytes": 9223372036854771712},
            GB,
            "memory/pod/memory.oom_control",
        ),
        ("4:memory:/\n0::/", {"memory/memory.limit_in_bytes": 9223372036854771712}, 0, ""),
        ("0::/", {}, 0, ""),
    ],
)
def test_the_smallest_limit_around_the_process_counts(
    tmp_path: Path, of_process: str, files: dict[str, object], limit: int, counter: str
) -> None:
    groups, processes = tmp_path / "cgroup", tmp_path / "proc"
    groups.mkdir()
    written(groups, files)
    written(processes, {"7/cgroup": of_process})
    found = limit_of(7, groups, processes)
    assert found.size == limit
    assert found.counters == (*([str(groups / counter)] if counter else []), str(processes / "vmstat"))


def test_a_process_that_is_gone_has_no_limit(tmp_path: Path) -> None:
    assert limit_of(7, tmp_path, tmp_path) == (0, (str(tmp_path / "vmstat"),))


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (MemoryAtEnd(), ""),
        (MemoryAtEnd(1024, GB, 0, 0), ""),
        (
            MemoryAtEnd(1024, GB, 0, 2),
            "the host had no memory left, and the process itself had used up to 1 MB",
        ),
        (MemoryAtEnd(0, GB, 1, 1), "the memory limit of its container, 1,024 MB, was reached"),
    ],
)
def test_only_a_counted_kill_is_for_lack_of_memory(end: MemoryAtEnd, why: str) -> None:
    assert end.why == why
