"""Where the kernel limits a process's memory, and where it counts whom it has killed: both versions of control groups."""

from pathlib import Path

import pytest

from stormspark.worker.host.memory_limits import MemoryAtEnd, limit_of

GB = 1 << 30


def written(root: Path, files: dict[str, object]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{content}\n")


COUNTS = "oom 4\noom_kill 3"


@pytest.mark.parametrize(
    ("of_process", "files", "limit", "counter"),
    [
        (
            "0::/pod/me",
            {
                "pod/me/memory.max": "max",
                "pod/me/memory.events": COUNTS,
                "pod/memory.max": GB,
                "pod/memory.events": COUNTS,
                "memory.max": "max",
            },
            GB,
            "pod/me/memory.events",
        ),
        (
            "0::/pod/me",
            {"pod/me/memory.max": GB, "pod/memory.max": 2 * GB, "pod/memory.events": COUNTS},
            GB,
            "pod/memory.events",
        ),
        ("0::/", {"memory.max": GB, "memory.events": COUNTS}, GB, "memory.events"),
        ("0::/of/the/host", {"memory.max": GB, "memory.events": COUNTS}, GB, "memory.events"),
        ("0::/", {"memory.max": "max", "memory.events": COUNTS}, 0, "memory.events"),
        (
            "4:memory:/pod/me\n3:cpu:/\n0::/",
            {
                "memory/pod/me/memory.limit_in_bytes": 9223372036854771712,
                "memory/pod/me/memory.oom_control": COUNTS,
                "memory/pod/memory.limit_in_bytes": GB,
                "memory/pod/memory.oom_control": COUNTS,
                "memory/memory.limit_in_bytes": 9223372036854771712,
                "memory/memory.oom_control": COUNTS,
            },
            GB,
            "memory/pod/me/memory.oom_control",
        ),
        (
            "4:memory:/\n0::/",
            {"memory/memory.limit_in_bytes": GB, "memory/memory.oom_control": "under_oom 0"},
            GB,
            "",
        ),
        ("4:memory:/\n0::/", {"memory/memory.limit_in_bytes": 9223372036854771712}, 0, ""),
        ("0::/", {}, 0, ""),
    ],
)
def test_the_smallest_limit_and_the_innermost_counter_around_the_process_count(
    tmp_path: Path, of_process: str, files: dict[str, object], limit: int, counter: str
) -> None:
    groups, processes = tmp_path / "cgroup", tmp_path / "proc"
    groups.mkdir()
    written(groups, files)
    written(processes, {"7/cgroup": of_process})
    found = limit_of(7, groups, processes)
    assert found.size == limit
    assert found.counters == (str(groups / counter) if counter else "", str(processes / "vmstat"))


def test_a_process_that_is_gone_has_no_limit(tmp_path: Path) -> None:
    assert limit_of(7, tmp_path, tmp_path) == (0, ("", str(tmp_path / "vmstat")))


@pytest.mark.parametrize(
    ("end", "certain", "why"),
    [
        (MemoryAtEnd(), False, ""),
        (MemoryAtEnd(1024, GB, 0, 0), False, ""),
        (MemoryAtEnd(1024, GB, 0, 2), False, ""),
        (
            MemoryAtEnd(1024, GB, -1, 2),
            False,
            "the host had no memory left for some process meanwhile, and the process itself had used up to 1 MB",
        ),
        (
            MemoryAtEnd(1024, 0, 1, 1),
            True,
            "the host had no memory left, and the process itself had used up to 1 MB",
        ),
        (MemoryAtEnd(0, GB, 1, -1), True, "the memory limit of its container, 1,024 MB, was reached"),
    ],
)
def test_only_a_counted_kill_is_for_lack_of_memory(end: MemoryAtEnd, certain: bool, why: str) -> None:
    assert (end.is_certain, end.why) == (certain, why)
