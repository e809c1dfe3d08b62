"""A spout's child without any library: emits what its arguments say, and tells what it hears in its log.

counting.py N          numbers up to N, with ids of each kind that JSON has
counting.py die        dies in its first nextTuple
counting.py hang       never says sync
counting.py odd WORDS  says WORDS in its first nextTuple
"""

import json
import os
import sys
import time


def read():
    lines = []
    while True:
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        if line == "end\n":
            return json.loads("".join(lines))
        lines.append(line)


def say(**message):
    sys.stdout.write(json.dumps(message) + "\nend\n")
    sys.stdout.flush()


say(pid=os.getpid()) if read()["pidDir"] else None
what = sys.argv[1]
left = int(what) if what.isdigit() else 1
IDS = [lambda n: n, lambda n: f"id {n}", lambda n: {"n": n}, lambda n: [n, "x"], lambda n: n + 0.5]
n = 0
while True:
    message = read()
    command = message["command"]
    if command == "next" and left:
        if what == "die":
            print("no more", file=sys.stderr, flush=True)
            os._exit(4)
        if what == "hang":
            time.sleep(600)
        if what == "odd":
            print(" ".join(sys.argv[2:]), flush=True)
        left -= 1
        say(command="emit", id=IDS[n % len(IDS)](n), tuple=[n])
        say(command="log", msg=f"tasks {json.dumps(read())}")
        n += 1
    elif command in ("ack", "fail"):
        say(command="log", msg=f"{command} {json.dumps(message['id'])}")
        if command == "fail":
            left += 1
    elif command in ("activate", "deactivate"):
        say(command="log", msg=command)
    say(command="sync")
