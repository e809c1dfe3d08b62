"""Spouts as teams write them: each asks for the next number in a way that takes its time."""

import json
import os
import threading
import time


def note(conf, name, who, **what):
    """Add a line to a task's file."""
    with open(os.path.join(conf["test.folder"], f"{name}-{who}.jsonl"), "a") as file:
        file.write(json.dumps(what) + "\n")


class Consumer:
    """Has a new number every ``secs`` seconds, and waits for it."""

    def __init__(self, secs):
        self.secs, self.next = secs, 0

    def __iter__(self):
        while True:
            yield self.poll()

    def poll(self):
        time.sleep(self.secs)
        self.next += 1
        return self.next


def pipe_of_numbers(secs):
    """The end for reading of a pipe into which a line comes every ``secs`` seconds."""
    reading, writing = os.pipe()

    def write():
        with os.fdopen(writing, "w", buffering=1) as file:
            for number in Consumer(secs):
                file.write(f"{number}\n")

    threading.Thread(target=write, daemon=True).start()
    return os.fdopen(reading)
