"""Connections between processes: who has no key learns nothing, and a door closes."""

from __future__ import annotations

import socket
import threading
from multiprocessing import AuthenticationError

import pytest

from stormspark.worker.addresses import Address
from stormspark.worker.connection import local_host
from stormspark.worker.key import Key
from stormspark.worker.link import Door, Endpoint, dial, remove_if_dead

KEY = Key(b"k" * 32)


@pytest.fixture
def seen():
    """The hosts of those that came in."""
    return []


@pytest.fixture
def door(tmp_path, seen):
    def echo(connection):
        seen.append(local_host(connection))
        while True:
            connection.send(connection.recv())

    door = Door(str(tmp_path / "door"), Address("127.0.0.1"), KEY, echo, "echo")
    yield door
    door.close()


def test_the_socket_file_is_taken_where_it_is_here(door, seen):
    with dial(door.endpoint, KEY) as connection:
        connection.send("hello")
        assert connection.recv() == "hello"
    assert seen == [None]


def test_tcp_is_taken_elsewhere(door, seen):
    elsewhere = Endpoint("/on/another/host", door.endpoint.tcp)
    with dial(elsewhere, KEY) as connection:
        connection.send(bytes(1_000_000))
        assert connection.recv() == bytes(1_000_000)
    assert seen == ["127.0.0.1"]


def test_another_key_opens_nothing(door, seen):
    with pytest.raises((AuthenticationError, ConnectionResetError)):
        dial(door.endpoint, Key(b"x" * 32))
    assert not seen


def test_a_silent_stranger_locks_nobody_out(door):
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(door.endpoint.unix)
        with dial(door.endpoint, KEY) as connection:
            connection.send(1)
            assert connection.recv() == 1


def test_a_closed_door_lets_nobody_in_and_its_threads_end(tmp_path):
    door = Door(str(tmp_path / "door"), Address("127.0.0.1"), KEY, lambda connection: None, "closing")
    door.close()
    for thread in threading.enumerate():
        if thread.name == "closing-door":
            thread.join(10)
            assert not thread.is_alive()
    with pytest.raises(FileNotFoundError):
        dial(door.endpoint._replace(tcp=None), KEY)
    with pytest.raises(ConnectionRefusedError):
        dial(door.endpoint, KEY)


def test_only_the_socket_file_of_a_dead_process_is_removed(door, tmp_path):
    remove_if_dead(door.endpoint)
    assert (tmp_path / "door").exists()
    dead = tmp_path / "dead"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(dead))
    remove_if_dead(Endpoint(str(dead)))
    assert not dead.exists()
