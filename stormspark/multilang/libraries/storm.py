# Licensed under the Apache License, Version 2.0, as the rest of stormspark is.
"""The module ``storm`` for children in Python that have none of their own: Storm's functions and classes (I1-I12).

It runs on Python 2.7 and 3, because a project may name either in its commands.
"""

from __future__ import print_function

import json
import os
import sys
import traceback
from collections import deque

json_encode, json_decode = json.dumps, json.loads
pending_taskids, pending_commands = deque(), deque()
MODE = None
ANCHOR_TUPLE = None


def readMsg():
    """Read one message: JSON, and a line that contains only ``end``."""
    lines = []
    while True:
        line = sys.stdin.readline()
        if not line:
            raise Exception("Read EOF from stdin")
        if line.rstrip("\r\n") == "end":
            return json_decode("".join(lines))
        lines.append(line)


def _next(waiting, others, wants_list):
    """Return the next message of one kind. Messages of the other kind wait in ``others``."""
    if waiting:
        return waiting.popleft()
    while True:
        message = readMsg()
        if isinstance(message, list) == wants_list:
            return message
        others.append(message)


def readTaskIds():
    return _next(pending_taskids, pending_commands, True)


def readCommand():
    return _next(pending_commands, pending_taskids, False)


def readTuple():
    message = readCommand()
    return Tuple(message["id"], message["comp"], message["stream"], message["task"], message["tuple"])


def sendMsgToParent(msg):
    sys.stdout.write(json_encode(msg) + "\nend\n")
    sys.stdout.flush()


def sync():
    sendMsgToParent({"command": "sync"})


def sendpid(heartbeatdir):
    pid = os.getpid()
    sendMsgToParent({"pid": pid})
    open(os.path.join(heartbeatdir, str(pid)), "w").close()


def emit(*args, **kwargs):
    _emit(*args, **kwargs)
    return readTaskIds()


def emitDirect(task, *args, **kwargs):
    kwargs["directTask"] = task
    _emit(*args, **kwargs)


def _emit(*args, **kwargs):
    (emitSpout if MODE is Spout else emitBolt)(*args, **kwargs)


def emitBolt(tup, stream=None, anchors=(), directTask=None):
    if ANCHOR_TUPLE is not None:
        anchors = [ANCHOR_TUPLE]
    _send_emit(tup, stream, directTask, anchors=[anchor.id for anchor in anchors])


def emitSpout(tup, stream=None, id=None, directTask=None):
    _send_emit(tup, stream, directTask, **({} if id is None else {"id": id}))


def _send_emit(tup, stream, task, **message):
    message.update(command="emit", tuple=list(tup))
    if stream is not None:
        message["stream"] = stream
    if task is not None:
        message["task"] = task
    sendMsgToParent(message)


def ack(tup):
    sendMsgToParent({"command": "ack", "id": tup.id})


def fail(tup):
    sendMsgToParent({"command": "fail", "id": tup.id})


def reportError(msg):
    sendMsgToParent({"command": "error", "msg": msg})


def log(msg, level=2):
    sendMsgToParent({"command": "log", "msg": msg, "level": level})


def logTrace(msg):
    log(msg, 0)


def logDebug(msg):
    log(msg, 1)


def logInfo(msg):
    log(msg, 2)


def logWarn(msg):
    log(msg, 3)


def logError(msg):
    log(msg, 4)


def rpcMetrics(name, params):
    sendMsgToParent({"command": "metrics", "name": name, "params": params})


def initComponent():
    setup = readMsg()
    sendpid(setup["pidDir"])
    return [setup["conf"], setup["context"]]


class Tuple(object):
    """A tuple of the topology."""

    def __init__(self, id, component, stream, task, values):
        self.id, self.component, self.stream, self.task, self.values = id, component, stream, task, values

    def __repr__(self):
        return "<Tuple %s>" % " ".join("%s=%r" % item for item in sorted(vars(self).items()))

    def is_heartbeat_tuple(self):
        return self.task == -1 and self.stream == "__heartbeat"

    def is_tick_tuple(self):
        return self.task == -1 and self.stream == "__tick"


class _Component(object):
    def initialize(self, stormconf, context):
        pass

    def run(self):
        try:
            self.initialize(*initComponent())
            while True:
                self._turn()
        except Exception:
            reportError(traceback.format_exc())


class Bolt(_Component):
    """A bolt that anchors and acks by itself."""

    def process(self, tuple):
        pass

    def run(self):
        global MODE
        MODE = Bolt
        _Component.run(self)

    def _turn(self):
        tup = readTuple()
        if tup.is_heartbeat_tuple():
            sync()
        else:
            self._take(tup)

    def _take(self, tup):
        self.process(tup)


class BasicBolt(Bolt):
    """A bolt whose emits are anchored, and whose tuples are acked after ``process``."""

    def _take(self, tup):
        global ANCHOR_TUPLE
        ANCHOR_TUPLE = tup
        try:
            self.process(tup)
            ack(tup)
        except Exception:
            reportError(traceback.format_exc())
            fail(tup)


class Spout(_Component):
    """A spout."""

    def activate(self):
        pass

    def deactivate(self):
        pass

    def ack(self, id):
        pass

    def fail(self, id):
        pass

    def nextTuple(self):
        pass

    def run(self):
        global MODE
        MODE = Spout
        _Component.run(self)

    def _turn(self):
        message = readCommand()
        command = message["command"]
        if command == "next":
            self.nextTuple()
        elif command in ("ack", "fail"):
            getattr(self, command)(message["id"])
        elif command in ("activate", "deactivate"):
            getattr(self, command)()
        sync()
