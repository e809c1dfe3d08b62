"""A bolt of its own process, which speaks Storm's multilang protocol by itself."""

import json
import os
import sys


def read():
    lines = []
    for line in iter(sys.stdin.readline, "end\n"):
        if not line:
            sys.exit(0)
        lines.append(line)
    return json.loads("".join(lines))


def send(message):
    sys.stdout.write(json.dumps(message) + "\nend\n")
    sys.stdout.flush()


setup = read()
open(os.path.join(setup["pidDir"], str(os.getpid())), "w").close()
send({"pid": os.getpid()})
while True:
    tup = read()
    if tup["stream"] == "__heartbeat":
        send({"command": "sync"})
        continue
    doubled = [2 * tup["tuple"][0]]
    send({"command": "emit", "tuple": doubled, "anchors": [tup["id"]], "need_task_ids": False})
    send({"command": "ack", "id": tup["id"]})
