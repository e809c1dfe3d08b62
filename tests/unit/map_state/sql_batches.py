"""A process that commits batches to two tables of a database and kills itself where it is told to; run by `test_sql.py`.

Arguments: the database's URL, the kind of state, the first batch, the place to die at and the batch to die in.
"""

from __future__ import annotations

import os
import signal
import sys

import sqlalchemy as sql

from stormspark.map_state import OpaqueMap, StateType, TransactionalMap, Updater
from stormspark.map_state.sql import SqlBackingMap

BATCHES = 6


def words(txid: int, attempt: int, kind: StateType) -> list[tuple[str]]:
    """What a batch brings; an opaque spout's replay brings other words, among them one that no other attempt has."""
    if kind is StateType.TRANSACTIONAL:
        return [("storm",), (f"word {txid % 3}",)]
    return [("storm",)] * (1 + attempt) + [(f"attempt {attempt}",), (f"word {txid % 3}",)]


def plus(amount: int) -> Updater[int]:
    return lambda before: (before or 0) + amount


def main(url: str, kind: StateType, first: int, place: str, fatal: int) -> None:
    engine = sql.create_engine(url)
    current = 0

    def die_at(here: str) -> None:
        if here == place and current == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    rows = SqlBackingMap(engine, "counts", kind), SqlBackingMap(engine, "letters", kind)
    counts, letters = [(OpaqueMap if kind is StateType.OPAQUE else TransactionalMap)(one) for one in rows]
    attempt = 1 if place == "nowhere" else 0
    commits = 0

    @sql.event.listens_for(engine, "after_cursor_execute")
    def _(connection, cursor, statement, *rest):
        if statement.startswith("DELETE"):
            die_at(f"deleted {commits}")
        if statement.startswith("INSERT"):
            die_at(f"inserted {commits}")

    @sql.event.listens_for(engine, "commit")
    def _(connection):
        nonlocal commits
        die_at(f"before commit {commits}")

    for current in range(first, BATCHES + 1):
        commits = 0
        batch = words(current, attempt if current == first else 0, kind)
        for state in counts, letters:
            state.begin_commit(current)
        counts.multi_update(batch, [plus(1)] * len(batch))
        letters.multi_update(batch, [plus(len(word)) for (word,) in batch])
        die_at("before any")
        counts.commit(current)
        commits = 1
        die_at("between the two")
        letters.commit(current)
        die_at("after both")
        print(current, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], StateType(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
