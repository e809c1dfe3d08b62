"""Writes numbers to files until it is killed, or up to a last one. Arguments: folder, file of acks, the last number or 0."""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable
from typing import Any

from stormspark import Fields, Spout, TopologyBuilder
from stormspark.connectors import CountSyncPolicy, FileBolt, FileSizeRotationPolicy
from stormspark.local import submit


class Numbers(Spout):
    """Emits numbers with some text; writes down at once which are acked."""

    def __init__(self, acks: str, last: int) -> None:
        self.acks, self.last = acks, last

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.next = collector, 1
        self.file = os.open(self.acks, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def next_tuple(self) -> None:
        if not self.last or self.next <= self.last:
            self.collector.emit((os.getpid(), self.next, "x" * 2000), message_id=self.next)
            self.next += 1

    def ack(self, message_id: Hashable) -> None:
        os.write(self.file, f"{os.getpid()},{message_id}\n".encode())

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("process", "n", "text"))


def main(folder: str, acks: str, last: str) -> None:
    sink = FileBolt(folder).with_sync_policy(CountSyncPolicy(50)).with_tick_tuple_interval_seconds(1)
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(acks, int(last))).set_max_spout_pending(1000)
    builder.set_bolt("sink", sink.with_rotation_policy(FileSizeRotationPolicy(1, "MB")), 2).shuffle_grouping(
        "numbers"
    )
    running = submit(builder.create_topology("writer"))
    if last == "0":
        running.wait()
    running.run_until_idle()
    running.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
