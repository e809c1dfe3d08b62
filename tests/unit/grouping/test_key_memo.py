"""The memory of a fields grouping: bounded, shared, and never wrong (D1)."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from stormspark.grouping import fields_task_index, key_memo
from stormspark.grouping.key_memo import TaskMemo, shared_memo

TASKS = (4, 5, 6, 9)


def test_a_key_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key's task is computed once, and then remembered (D1)."""
    memo = TaskMemo(TASKS, "long", fields=1)
    keys: list[Any] = ["storm", 7, True, None, b"x", 2**70]
    before = [memo[key] for key in keys]
    monkeypatch.setattr(TaskMemo, "compute", None)
    assert [memo[key] for key in keys] == before == [TASKS[fields_task_index([key], 4)] for key in keys]


@pytest.mark.parametrize("key", [1.0, -0.0, (1.0,), ("a",), frozenset({1})])
def test_a_key_that_could_be_mistaken_for_another_is_not_remembered(key: Any) -> None:
    """Keys that could equal a key of another type are not remembered (D1, D2)."""
    memo = TaskMemo(TASKS, "long", fields=1)
    assert memo[key] == TASKS[fields_task_index([key], 4)]
    assert len(memo) == 0


@pytest.mark.parametrize("key", ["x" * 600, b"x" * 600, 2**6000])
def test_a_long_key_is_not_remembered(key: Any) -> None:
    """A long key is not remembered (D1)."""
    memo = TaskMemo(TASKS, "long", fields=1)
    assert memo[key] == TASKS[fields_task_index([key], 4)]
    assert len(memo) == 0


def test_a_memo_never_holds_more_than_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A memo never holds more keys than its limit, and still gives the right tasks (D1)."""
    monkeypatch.setattr(key_memo, "MOST_KEYS", 10)
    memo = TaskMemo(TASKS, "long", fields=2)
    sizes = set()
    for n in range(50):
        assert memo["user", n] == TASKS[fields_task_index(["user", n], 4)]
        assert memo["user", str(n)] == TASKS[fields_task_index(["user", str(n)], 4)]
        sizes.add(len(memo))
    assert max(sizes) == 10


def test_senders_share_a_memo_while_one_of_them_lives() -> None:
    """Senders with the same tasks, typing and fields share a memo, which ends with the last of them (D1)."""
    mine, yours = shared_memo(TaskMemo, (1, 2, 3), "long", 1), shared_memo(TaskMemo, (1, 2, 3), "long", 1)
    assert mine is yours
    assert shared_memo(TaskMemo, (1, 2, 3), "json", 1) is not mine
    assert shared_memo(TaskMemo, (1, 2, 3), "long", 2) is not mine
    assert shared_memo(TaskMemo, (1, 2, 4), "long", 1) is not mine
    mine["storm"]
    del mine, yours
    gc.collect()
    assert len(shared_memo(TaskMemo, (1, 2, 3), "long", 1)) == 0
