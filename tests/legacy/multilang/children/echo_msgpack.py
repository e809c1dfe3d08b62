"""A bolt's child that speaks msgpack: emits what it is given, and acks it."""

import os
import sys

import msgpack

unpacker = msgpack.Unpacker()


def say(**message):
    sys.stdout.buffer.write(msgpack.packb(message))
    sys.stdout.flush()


begun = False
while data := os.read(0, 65536):
    unpacker.feed(data)
    for message in unpacker:
        if not begun:
            begun = True
            with open(os.path.join(message["pidDir"], str(os.getpid())), "w"):
                say(pid=os.getpid())
        elif isinstance(message, list):
            pass
        elif message["stream"] == "__heartbeat":
            say(command="sync")
        else:
            say(command="emit", anchors=[message["id"]], tuple=message["tuple"])
            say(command="ack", id=message["id"])
