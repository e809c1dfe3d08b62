"""A real Kafka broker for tests: one node, KRaft, loopback only, no container.

    with KafkaBroker(folder) as broker:
        broker.create_topic("words", partitions=4)
        broker.produce("words", [b"to", b"be"])
        ...                                   # clients and Spark: broker.bootstrap
        broker.kill()                         # kill -9
        broker.start()                        # the same data, the same port

The broker never outlives the process that started it: the kernel kills it (parent-death signal).
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.maven_jars import maven_jars

__all__ = ["KafkaBroker"]

_READY = "Kafka Server started"
_START_SECS, _STOP_SECS, _ANSWER_SECS = 300, 60, 120

#: Asks the kernel for SIGKILL at the parent's death, looks whether that has happened already, becomes the broker.
_LAUNCH = """
import ctypes, os, signal, sys
ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
if os.getppid() != int(sys.argv[1]):
    sys.exit("the test is gone already")
os.execv(sys.argv[2], sys.argv[2:])
"""


def _ask(question: Callable[[], Future[Any]], done: int) -> None:
    """Ask again where a broker that is busy, or has just begun, has no controller yet; ``done`` says that it was heard before."""
    until, asked = time.monotonic() + 3 * _ANSWER_SECS, False
    while True:
        try:
            question().result(_ANSWER_SECS)
        except KafkaException as error:
            if asked and error.args[0].code() == done:
                return
            if error.args[0].code() != KafkaError._TIMED_OUT or time.monotonic() > until:
                raise
            asked = True
        else:
            return


class KafkaBroker:
    """One broker whose data, configuration and log (``broker.log``) are in ``folder``.

    ``start``, ``stop`` and ``kill`` as often as a test likes; data, port and topics stay.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder = folder.resolve()
        self.log = folder / "broker.log"
        self._port, controller = _free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None
        data = folder / "data"
        data.mkdir(parents=True)
        self._properties = folder / "server.properties"
        self._properties.write_text(_SERVER.format(port=self._port, controller=controller, data=data))
        # What `kafka-storage format` writes, without the two seconds of its JVM.
        (data / "meta.properties").write_text(
            f"version=1\nnode.id=1\ncluster.id={_kafka_uuid()}\ndirectory.id={_kafka_uuid()}\n"
        )

    @property
    def bootstrap(self) -> str:
        """What clients call ``bootstrap.servers``."""
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int | None:
        """The process, while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the broker and wait until it serves: 3 s, 4 s after `kill`. Does nothing if it runs."""
        if self.pid is not None:
            return
        if threading.current_thread() is not threading.main_thread():
            msg = "start the broker in the main thread: the kernel ends it with the thread that started it"
            raise RuntimeError(msg)
        said_before = self.log.stat().st_size if self.log.exists() else 0
        java = _java()
        class_path = os.pathsep.join(map(str, maven_jars("kafka-broker")))
        command = [java, *_JVM, "-cp", class_path, "kafka.Kafka", str(self._properties)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-c", _LAUNCH, str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,  # a Ctrl-C that is meant for pytest must not end it first
            )
        until = time.monotonic() + _START_SECS
        while _READY not in self._said_since(said_before):
            if self._process.poll() is not None or time.monotonic() > until:
                self.kill()
                msg = f"the Kafka broker did not start, {self.log} ends:\n{self._said_since(said_before)[-2000:]}"
                raise RuntimeError(msg)
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it in order (SIGTERM) and wait for its end: 0.6 s. Does nothing if it does not run."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill -9 and wait for its end, as a host that loses power would."""
        self._end(signal.SIGKILL)

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Make a topic, and return when it is there."""
        # A client that is dropped cancels what it was asked, so it needs a name of its own.
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        _ask(
            lambda: admin.create_topics([NewTopic(name, partitions, 1)])[name],
            KafkaError.TOPIC_ALREADY_EXISTS,
        )

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and return when no client is told of it any more."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        _ask(lambda: admin.delete_topics([name])[name], KafkaError.UNKNOWN_TOPIC_OR_PART)
        until = time.monotonic() + _ANSWER_SECS
        while name in admin.list_topics(timeout=_ANSWER_SECS).topics:
            if time.monotonic() > until:
                msg = f"the topic {name} is still there"
                raise TimeoutError(msg)
            time.sleep(0.05)

    def log_bytes(self, topic: str, partition: int = 0) -> int:
        """How large the log of a partition is, in its one segment; see `cut`."""
        return self._segment(topic, partition).stat().st_size

    def cut(self, topic: str, partition: int = 0, *, log_bytes: int = 0) -> None:
        """While the broker does not run: lose what was written to a partition after its log had so many bytes.

        As after an election of a leader that did not have it, or with a disk that was not flushed: the topic's id stays.
        """
        assert self.pid is None, "stop the broker first"
        segment = self._segment(topic, partition)
        os.truncate(segment, log_bytes)
        for pattern in ("*.index", "*.timeindex", "*.snapshot", "leader-epoch-checkpoint"):
            for file in segment.parent.glob(pattern):
                file.unlink()
        # Else it would believe what it has noted down of its logs.
        data = self.folder / "data"
        for name in (
            ".kafka_cleanshutdown",
            "recovery-point-offset-checkpoint",
            "replication-offset-checkpoint",
        ):
            (data / name).unlink(missing_ok=True)

    def _segment(self, topic: str, partition: int) -> Path:
        (segment,) = (self.folder / "data" / f"{topic}-{partition}").glob("*.log")
        return segment

    def produce(
        self,
        topic: str,
        values: Iterable[bytes | None],
        *,
        keys: Iterable[bytes | None] = (),
        partition: int | None = None,
    ) -> None:
        """Write messages, in order, and return when the broker has them all.

        ``keys`` may be shorter than ``values``: the rest has none. Without ``partition`` Kafka's own partitioner
        chooses: by key, or at random.
        """
        refused: list[KafkaError] = []
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "linger.ms": 5,
                "max.in.flight": 1,  # order, without the producer ids that a young broker makes wait for
                "topic.metadata.propagation.max.ms": 2000,  # how long an unknown topic is hoped for
            }
        )
        key = iter(keys)
        for number, value in enumerate(values):
            if number == 1:
                # The first one goes alone: it shows that the broker has the topic. Where it has not yet, what was refused is sent
                # again, and may come behind what was not.
                producer.flush(_ANSWER_SECS)
            while True:
                try:
                    producer.produce(
                        topic,
                        value,
                        next(key, None),
                        -1 if partition is None else partition,
                        on_delivery=lambda error, _: refused.append(error) if error else None,
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
        if left := producer.flush(_ANSWER_SECS):
            msg = f"{left} messages for {topic} did not reach the broker in {_ANSWER_SECS} s"
            raise TimeoutError(msg)
        if refused:
            raise KafkaException(refused[0])

    def messages(self, topic: str) -> list[Message]:
        """All that is in a topic now, partition by partition, each in its order."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "tests",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,  # the end of a partition is told after this
            }
        )
        found: list[Message] = []
        try:
            for partition in sorted(consumer.list_topics(topic, _ANSWER_SECS).topics[topic].partitions):
                consumer.assign([TopicPartition(topic, partition, 0)])
                while (message := consumer.poll(_ANSWER_SECS)) is not None:
                    if (error := message.error()) is None:
                        found.append(message)
                    elif error.code() == KafkaError._PARTITION_EOF:
                        break
                    else:
                        raise KafkaException(error)
        finally:
            consumer.close()
        return found

    def _said_since(self, position: int) -> str:
        with self.log.open("rb") as log:
            log.seek(position)
            return log.read().decode(errors="replace")

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(_STOP_SECS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        msg = "a Kafka broker needs Java 17: apt-get install openjdk-17-jre-headless, or set JAVA_HOME"
        raise RuntimeError(msg)
    return java


def _free_ports(count: int) -> list[int]:
    """Ports that nobody has now; held together, so that they differ."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def _kafka_uuid() -> str:
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


#: A small heap, and a collector without threads of its own: the machine belongs to Spark.
_JVM = ["-Xmx256m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true"]

_SERVER = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
delete.topic.enable=true
# How long a killed broker's registration keeps its successor out.
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=200
# One broker, one copy of everything; groups start without waiting for more members.
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
# Little memory and few threads.
log.cleaner.dedupe.buffer.size=2097152
num.network.threads=2
num.io.threads=2
background.threads=2
"""
