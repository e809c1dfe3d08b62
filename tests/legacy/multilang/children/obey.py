"""A bolt's child without any library: the first value of each tuple says what it does, so that tests can have it do anything.

Its first argument may say what it does instead of beginning well.
"""

import json
import os
import subprocess
import sys
import time


def read():
    lines = []
    while True:
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        if line.rstrip("\r\n") == "end":
            return json.loads("".join(lines))
        lines.append(line)


def write(text, end="\nend\n"):
    sys.stdout.write(text + end)
    sys.stdout.flush()


def say(**message):
    write(json.dumps(message))


def emit(tup, *values, **more):
    say(command="emit", tuple=list(values), anchors=[tup["id"]], **more)


def done(tup):
    say(command="ack", id=tup["id"])


START = sys.argv[1] if len(sys.argv) > 1 else ""
setup = read()
if START == "exit":
    print("no such library", file=sys.stderr, flush=True)
    sys.exit(7)
if START == "noise":
    write("starting up", "\n")
if START == "silence":
    time.sleep(600)
if START == "emit":
    say(command="emit", tuple=[1])
if START == "log":
    say(command="log", msg="still starting")
pid_file = os.path.join(setup["pidDir"], str(os.getpid()))
with open(pid_file, "w"):
    say(pid=os.getpid())

held = []
lists = []
heartbeats = 0
while True:
    tup = read()
    if isinstance(tup, list):
        lists.append(tup)
        continue
    if tup["task"] == -1 and tup["stream"] == "__heartbeat":
        heartbeats += 1
        say(command="sync")
        continue
    if tup["stream"] == "__tick":
        for one in held:
            emit(one, "released", one["tuple"][1], need_task_ids=False)
            done(one)
        held.clear()
        if START == "ack ticks":
            done(tup)
        continue
    order, *values = tup["tuple"]
    if order == "echo":
        emit(tup, "echo", *values, need_task_ids=False)
    elif order == "setup":
        emit(tup, "setup", json.dumps(setup), need_task_ids=False)
    elif order == "message":
        emit(tup, "message", json.dumps(tup), need_task_ids=False)
    elif order == "surroundings":
        told = {
            "cwd": os.getcwd(),
            "env": dict(os.environ),
            "files": os.listdir(setup["pidDir"]),
            "pid": os.getpid(),
        }
        emit(tup, "surroundings", json.dumps(told), need_task_ids=False)
    elif order == "emit":  # with whatever the test wants in it
        say(**{"command": "emit", "anchors": [tup["id"]], **values[0]})
    elif order == "lists":
        emit(tup, "lists", json.dumps(lists), need_task_ids=False)
    elif order == "heartbeats":
        emit(tup, "heartbeats", heartbeats, need_task_ids=False)
    elif order == "say":
        say(**values[0])
    elif order == "write":
        write(values[0], "")
    elif order == "fail":
        say(command="fail", id=tup["id"])
        continue
    elif order == "ack twice":
        done(tup)
    elif order == "emit after ack":
        done(tup)
        emit(tup, "late", 0)
        continue
    elif order == "hold":
        held.append(tup)
        continue
    elif order == "stderr":
        print(values[0], file=sys.stderr, flush=True)
    elif order == "flood":
        for n in range(values[0]):
            print(f"line {n} " + "x" * 100, file=sys.stderr)
    elif order == "pretty":
        write(
            json.dumps({"command": "emit", "tuple": ["pretty", values[0]], "need_task_ids": False}, indent=2)
        )
    elif order == "windows":
        write(json.dumps({"command": "log", "msg": "from Windows"}), "\r\nend\r\n")
    elif order == "sleep":
        time.sleep(values[0])
    elif order == "die":
        print("Traceback: it was too much", file=sys.stderr, flush=True)
        os._exit(values[0])
    elif order == "half":
        write(values[0], "")
        os._exit(3)
    elif order == "kill":
        os.kill(os.getpid(), 9)
    elif order == "close":
        os.close(1)
        time.sleep(600)
    elif order == "fork":
        sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        emit(tup, "fork", sleeper.pid, need_task_ids=False)
    done(tup)
