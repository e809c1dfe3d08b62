"""Whatever dies, every message has its effect at least once, and every tree one verdict.

A few thousand messages and one fault each by default. ``FAULT_MESSAGES``, ``FAULT_INJECTIONS`` and ``TEST_SEED`` make it
a soak; the table comes at the end of the run, and in ``build/nothing_lost``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.faults.nothing_lost.driver import Plan
from tests.faults.nothing_lost.injectors import FAULTS, TOGETHER
from tests.faults.nothing_lost.private_disk import PrivateDisk, PrivateDiskError
from tests.faults.nothing_lost.scenario import PARTITIONS, Accounts, Driver, Scale, Scenario
from tests.faults.nothing_lost.topology import log_files
from tests.kafka_broker import KafkaBroker

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.slow]


@pytest.fixture
def scenario(kafka: KafkaBroker, tmp_path: Path) -> Iterator[Callable[..., Scenario]]:
    """Makes a scenario; whatever becomes of it, nothing of it is left."""
    made: list[Scenario] = []

    def make(fault: str, prefix: tuple[str, ...] = (), **plan: Any) -> Scenario:
        name = re.sub(r"\W+", "-", fault)
        fields = {"checkpoint": str(tmp_path / "checkpoint"), **plan}
        driver = Driver(
            Plan(name=name, bootstrap=kafka.bootstrap, folder=str(tmp_path), **fields), tmp_path, prefix
        )
        made.append(Scenario(kafka, driver, SCALE, fault))
        for topic in made[-1].topics.values():
            kafka.create_topic(topic, PARTITIONS)
        return made[-1]

    yield make
    kafka.start()
    for one in made:
        one.driver.clear()


@pytest.fixture
def balance(record_accounts: Callable[[Accounts], None]) -> Callable[..., None]:
    """Notes the accounts of a run, then looks at them."""

    def check(accounts: Accounts, *, may_time_out: bool = False) -> None:
        record_accounts(accounts)
        assert not accounts.lost, accounts
        assert not accounts.wrong, accounts
        assert accounts.counters["pending"] == 0, accounts
        assert accounts.counters["dropped"] == 0, accounts
        assert may_time_out or accounts.counters["timed_out"] == 0, accounts

    return check


SCALE = Scale.of_environment()
#: By the run's name, the faults of one kind of topology.
RUNS = TOGETHER if SCALE.injections == 1 else {fault: [fault] for fault in FAULTS if fault != "disk full"}
#: A fault in one run is much the same as in another; drivers are killed in tests/spark, and in tests/faults/exactly_once.
IN_SOAK = ("two drivers", "one worker", "long outages")


@pytest.mark.parametrize(
    "run", [pytest.param(run, marks=[pytest.mark.long] if run in IN_SOAK else []) for run in RUNS]
)
def test_nothing_is_lost(run: str, scenario: Callable[..., Scenario], balance: Callable[..., None]) -> None:
    """E15, E16, B10, K3: every message's effect is there, every tree has one verdict, the offsets are committed."""
    faults = [FAULTS[fault] for fault in RUNS[run] for _ in range(SCALE.injections)]
    accounts = scenario(run, **faults[0].plan).run([fault.inject for fault in faults])
    balance(accounts, may_time_out=faults[0].may_time_out)
    assert accounts.counters["dead_letters"] == 0
    assert accounts.counters["acker_batches"] > 0, "nobody could have seen a row dropped"


@pytest.mark.skipif(SCALE.injections == 1, reason="it shows that this can fail; `make soak` has the time")
def test_without_the_durable_acker_much_is_lost_and_that_is_noticed(
    scenario: Callable[..., Scenario],
) -> None:
    """What the others hold was not lost by chance."""
    plan = {"workers": 1, "conf": {"stormspark.acker.durable": False}}
    accounts = scenario("no durable acker", **plan).run([FAULTS["the only worker killed"].inject])
    assert accounts.lost > 100


@pytest.mark.long  # CI has storage that is away (`tests/faults/test_outage.py`)
def test_nothing_is_lost_on_a_full_disk(
    scenario: Callable[..., Scenario], balance: Callable[..., None], tmp_path: Path
) -> None:
    """W3: while the checkpoint can't be written no batch ends; it goes on, or stops with the reason and can be started again."""
    fault = FAULTS["disk full"]
    try:
        with PrivateDisk(tmp_path / "disk", 200) as disk:
            hurt = scenario("disk full", disk.enter, checkpoint=str(tmp_path / "disk"), **fault.plan)
            hurt.disk, hurt.checkpoint, hurt.starts_again = disk, disk.seen_from_outside, True
            balance(hurt.run([fault.inject] * SCALE.injections))
    except PrivateDiskError as error:
        pytest.skip(str(error))


@pytest.mark.long  # dead letters of other sources are in tests/conformance and in tests/spark/test_sources.py
def test_a_poisoned_message_goes_to_the_dead_letters_and_the_others_go_on(
    kafka: KafkaBroker, scenario: Callable[..., Scenario], balance: Callable[..., None], tmp_path: Path
) -> None:
    """K4, W13: it is tried again as often as its policy says, and holds nobody up."""
    poison = sorted(Random(SCALE.seed).sample(range(SCALE.messages // 2), max(6, SCALE.injections)))
    hurt = scenario("poisoned messages", poison=poison, max_retries=2)
    hurt.accounts.injected = [f"order {n} always fails" for n in poison]
    balance(hurt.run([]))
    assert hurt.accounts.counters["dead_letters"] == len(poison)
    letters = [
        json.loads(line) for file in (tmp_path / "dead").iterdir() for line in file.read_text().splitlines()
    ]
    topic = hurt.topics["orders"]
    poisoned = [message for message in kafka.messages(topic) if int(message.value() or b"") in poison]
    ids = sorted([topic, message.partition(), message.offset()] for message in poisoned)
    assert sorted(letter["message_id"] for letter in letters) == ids
    assert {letter["component"] for letter in letters} == {"orders"}
    tried = Counter(
        line for path in log_files(tmp_path, "poisoned") for line in path.read_text().splitlines()
    )
    assert sorted(tried.values()) == [3] * len(poison)
