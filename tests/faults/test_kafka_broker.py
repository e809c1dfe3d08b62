"""The tests' own broker: a real Kafka that keeps its word through kill -9, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from tests.kafka_broker import KafkaBroker

pytestmark = [pytest.mark.faults, pytest.mark.slow]


def values(broker: KafkaBroker, topic: str) -> list[bytes | None]:
    return [message.value() for message in broker.messages(topic)]


def test_messages_go_to_their_partition_in_order(kafka: KafkaBroker) -> None:
    kafka.create_topic("partitions", partitions=3)
    kafka.produce("partitions", [b"a", None, b"c"], keys=[b"key", b"key"], partition=2)
    found = kafka.messages("partitions")
    assert [(m.partition(), m.offset(), m.key(), m.value()) for m in found] == [
        (2, 0, b"key", b"a"),
        (2, 1, b"key", None),
        (2, 2, None, b"c"),
    ]


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_broker_that_ended_has_its_messages_and_its_port_when_it_is_back(
    kafka: KafkaBroker, how: str
) -> None:
    kafka.create_topic(how, partitions=2)
    written = [b"%d" % i for i in range(1000)]
    kafka.produce(how, written)
    bootstrap, pid = kafka.bootstrap, kafka.pid
    assert pid is not None
    try:
        getattr(kafka, how)()
        assert kafka.pid is None and not psutil.pid_exists(pid)
    finally:
        kafka.start()
    kafka.produce(how, [b"after"])
    assert kafka.bootstrap == bootstrap
    assert sorted(v or b"" for v in values(kafka, how)) == sorted([*written, b"after"])


def test_a_topic_that_nobody_made_is_refused(kafka: KafkaBroker) -> None:
    with pytest.raises(Exception, match=r"UNKNOWN_TOPIC|Unknown topic"):
        kafka.produce("nobody-made-this", [b"x"])


def test_a_killed_test_run_takes_its_broker_along(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.faults.kafka_owner", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as owner:
        assert owner.stdout is not None and owner.stdout.readline() == b"started\n"
        broker = psutil.Process(int((tmp_path / "pid").read_text()))
        assert "kafka.Kafka" in broker.cmdline()
        owner.kill()
        broker.wait(timeout=60)  # raises where it lives on
    assert not broker.is_running()


def test_it_listens_on_loopback_only(kafka: KafkaBroker) -> None:
    assert kafka.pid is not None
    listening = [c.laddr.ip for c in psutil.Process(kafka.pid).net_connections() if c.status == "LISTEN"]
    assert listening and {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}


def test_a_thread_that_would_take_it_along_may_not_start_it(tmp_path: Path) -> None:
    said: list[str] = []

    def start() -> None:
        try:
            KafkaBroker(tmp_path / "kafka").start()
        except RuntimeError as error:
            said.append(str(error))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert said and "main thread" in said[0]


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = KafkaBroker(tmp_path / "kafka")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(RuntimeError, match="needs Java 17"):
        broker.start()
    (tmp_path / "java").symlink_to("/bin/false")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(RuntimeError, match=r"Maven fetches .* not on the PATH"):
        broker.start()


def test_a_broker_that_does_not_come_up_tells_its_log(tmp_path: Path) -> None:
    broker = KafkaBroker(tmp_path / "kafka")
    (broker.folder / "server.properties").write_text("process.roles=nothing\n")
    with pytest.raises(RuntimeError, match=r"(?s)did not start, .*broker\.log ends.*process\.roles"):
        broker.start()
    assert broker.pid is None
