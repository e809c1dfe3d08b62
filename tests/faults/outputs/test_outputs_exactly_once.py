"""kill -9 at every step of the commit protocol: what is outside is as if nothing had happened."""

from __future__ import annotations

import os
import pickle
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import deltalake
import pytest
import sqlalchemy as sql

from stormspark.checkpoint.barriers import BARRIERS
from stormspark.checkpoint.ordered_keys import decode_key
from tests.faults.exactly_once.test_exactly_once import ALL, FILES, KILLS, LINES_A_FILE, Run
from tests.faults.exactly_once.topology import KEYS
from tests.faults.outputs.topology import KAFKA, SQL
from tests.faults.test_kafka_bolt_exactly_once import committed_messages
from tests.kafka_broker import KafkaBroker
from tests.postgres_server import PostgresServer
from tests.waiting import kill_all_of, worker_processes

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.slow]


#: In CI; the long form has all of them.
BEFORE_DELIVERY = ("driver.committed",)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """PostgreSQL where there is one, else SQLite."""
    if PostgresServer.missing() is None:
        with PostgresServer() as server:
            yield server.url
    else:
        yield f"sqlite:///{tmp_path_factory.mktemp('sql')}/counts.db?timeout=60"


class Outputs(Run):
    """The same, with destinations to look at."""

    topology = "tests.faults.outputs.topology"

    def __init__(self, folder: Path, kafka: KafkaBroker, database: str) -> None:
        super().__init__(folder, f"outputs-{os.getpid()}-{folder.name}", 2)
        self.kafka, self.database = kafka, database
        self.topic = f"drawn-{folder.name}"
        kafka.create_topic(self.topic, partitions=3)
        (folder / KAFKA).write_text(f"{kafka.bootstrap} {self.topic}")
        (folder / SQL).write_text(database)

    def counts(self, table: str) -> dict[str, int]:
        engine = sql.create_engine(self.database)
        with engine.connect() as connection:
            rows = connection.execute(sql.text(f"SELECT key, value FROM {table}")).all()
        engine.dispose()
        return {key: int(value) for key, value in rows if "journal" not in key and int(value or 0)}

    def check(self) -> int:
        """Each destination has what the state of ``choose`` says was drawn."""
        drawn: dict[tuple[int, int], int] = {}
        self.table.refresh()
        for row in self.table.as_arrow("choose").read_all().to_pylist():
            drawn[decode_key(row["key"])] = pickle.loads(row["value"])
        assert drawn
        expected = Counter((sender, n, number) for (sender, n), number in drawn.items())

        appended = deltalake.DeltaTable(self.folder / "appended").to_pyarrow_table()
        assert _counted(appended) == expected

        merged = deltalake.DeltaTable(self.folder / "merged").to_pyarrow_table()
        assert _counted(merged) == expected

        by_key: dict[bytes, list[list[int]]] = defaultdict(list)
        for key, value in committed_messages(self.kafka, self.topic):
            assert key is not None and value is not None
            by_key[key].append([int(part) for part in value.split()])
        sent = Counter((one[0], one[1], one[2]) for messages in by_key.values() for one in messages)
        assert sent == expected
        for messages in by_key.values():
            in_order: dict[tuple[int, int], int] = {}
            for sender, n, _, task in messages:
                assert n > in_order.get((sender, task), -1), "out of order within a key"
                in_order[sender, task] = n

        keys = Counter(str(n % KEYS) for _, n in drawn)
        assert self.counts("by_opaque") == {f'["{key}"]': count for key, count in keys.items()}
        lines = FILES * LINES_A_FILE
        assert self.counts("by_transactional") == {f'["{key}"]': lines // KEYS for key in range(KEYS)}
        return len(drawn)


def _counted(table: Any) -> Counter[tuple[int, int, int]]:
    columns = (table.column(name).to_pylist() for name in ("sender", "n", "number"))
    return Counter(zip(*columns, strict=True))


@contextmanager
def running(folder: Path, kafka: KafkaBroker, database: str) -> Iterator[Outputs]:
    engine = sql.create_engine(database)
    with engine.begin() as connection:
        for table in "by_opaque", "by_transactional":
            connection.execute(sql.text(f"DROP TABLE IF EXISTS {table}"))
    engine.dispose()
    run = Outputs(folder, kafka, database)
    run.start()
    try:
        run.goes_on(2)
        yield run
    finally:
        assert run.process is not None
        kill_all_of(run.name, run.process)


def test_killed_at_every_step_of_the_protocol(kafka: KafkaBroker, database: str, tmp_path: Path) -> None:
    """C42, C44, G8, G15, K8: Delta tables, a topic and a database have all that was committed, once."""
    barriers = BARRIERS if ALL else BEFORE_DELIVERY
    with running(tmp_path, kafka, database) as run:
        for barrier in barriers:
            run.kill_at(barrier)
            run.goes_on(2)
        run.end()
        database = sql.make_url(database).get_backend_name()
        print(f"{len(barriers)} barriers, {run.drivers} drivers, {run.check():,} numbers, {database}")


@pytest.mark.skipif(not ALL, reason="`make soak-exactly-once` has the time")
def test_killed_at_random_with_a_broker_that_goes_too(
    kafka: KafkaBroker, database: str, tmp_path: Path
) -> None:
    """C42, C44, K8: workers, drivers and the broker, at any moment."""
    choice = random.Random(int(os.environ.get("TEST_SEED", "7")))
    killed: Counter[str] = Counter()
    with running(tmp_path, kafka, database) as run:
        for number in range(KILLS + 1):
            time.sleep(choice.uniform(0, 2))
            what = "broker" if number == 1 else choice.choice(["worker", "driver"])
            if what == "broker":
                kafka.kill()
                time.sleep(choice.uniform(0, 5))
                kafka.start()
            elif what == "driver":
                assert run.process is not None
                run.process.kill()
                run.process.wait()
            elif alive := worker_processes(run.name):
                choice.choice(list(alive.values())).kill()
            killed[what] += 1
            run.goes_on()
        run.end()
        print(f"killed {dict(killed)}, {run.drivers} drivers, {run.check():,} numbers")
