"""Connections between processes: who has no key learns nothing, nobody waits for ever, and a door closes."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import subprocess
import sys
import threading
from multiprocessing import AuthenticationError

import pytest

from stormspark.errors import UnsupportedEnvironmentError
from stormspark.spark.certificate import encrypting_key, new_certificate
from stormspark.worker.host import link
from stormspark.worker.host.addresses import Address, Ports, listen
from stormspark.worker.host.connection import Connection, local_host
from stormspark.worker.host.key import Key
from stormspark.worker.host.link import STRANGERS, Door, Endpoint, dial, remove_if_dead

KEY = Key(b"k" * 32)
TLS = Key(KEY.secret, new_certificate("a test"))
ELSEWHERE = "/on/another/host"


@pytest.fixture
def seen():
    """The hosts of those that came in."""
    return []


@pytest.fixture
def make(tmp_path, seen):
    doors = []

    def echo(connection):
        seen.append(local_host(connection))
        while True:
            connection.send(connection.recv())

    def make_door(host="127.0.0.1", key=KEY, **options):
        name = f"door-{len(doors)}"
        doors.append(Door(str(tmp_path / name), host and Address(host), key, echo, "echo", **options))
        return doors[-1]

    yield make_door
    for door in doors:
        door.close()


@pytest.fixture
def door(make):
    return make()


def by_tcp(door):
    return Endpoint(ELSEWHERE, door.endpoint.tcp)


def says_the_same(endpoint, key=KEY, what="hello"):
    with dial(endpoint, key) as connection:
        connection.send(what)
        return connection.recv() == what


def test_the_socket_file_is_taken_where_it_is_here(door, seen):
    assert says_the_same(door.endpoint)
    assert seen == [None]


@pytest.mark.parametrize("key", [KEY, TLS], ids=["plain", "tls"])
@pytest.mark.parametrize("size", [0, 1, 64 * 1024, 64 * 1024 + 1, 5_000_000])
def test_tcp_is_taken_elsewhere(make, seen, key, size):
    assert says_the_same(by_tcp(make(key=key)), key, bytes(size))
    assert seen == ["127.0.0.1"]


@pytest.mark.parametrize("key", [KEY, TLS], ids=["plain", "tls"])
def test_another_key_opens_nothing(make, seen, key):
    door = make(key=key)
    for endpoint in (door.endpoint, by_tcp(door)):
        with pytest.raises(AuthenticationError):
            dial(endpoint, Key(b"x" * 32, key.certificate))
    assert not seen


# -- addresses -----------------------------------------------------------------------------------------------


def test_ipv6(make, seen):
    assert says_the_same(by_tcp(make("::1")))
    assert seen == ["::1"]


def test_a_name_of_this_host(make):
    assert says_the_same(by_tcp(make("localhost")))


def test_an_address_that_is_not_ours_is_advertised_and_all_of_ours_are_listened_to(make):
    """Behind NAT: 192.0.2.1 is nobody's (RFC 5737)."""
    door = make("192.0.2.1")
    host, port = door.endpoint.tcp
    assert host == "192.0.2.1"
    for ours in ("127.0.0.1", "::1"):
        assert says_the_same(Endpoint(ELSEWHERE, (ours, port)))


def test_an_address_to_bind_to_that_is_not_ours_is_refused():
    with pytest.raises(UnsupportedEnvironmentError, match=r"192\.0\.2\.1 is not an address of this host"):
        listen(Address("127.0.0.1", bind="192.0.2.1"))


def three_free_ports():
    """The first of three in a row that nobody is given by chance: they are below those that are."""
    for first in range(20_000 + os.getpid() % 9_000, 32_000, 3):
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for port in range(first, first + 3):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    pytest.fail("no three ports are free")


def test_ports_that_are_fixed():
    first = three_free_ports()
    with listen(Address("127.0.0.1", None, Ports(first, 0, "stormspark.worker.port"))) as first_port:
        assert first_port.getsockname()[1] == first
        ports = Ports(first, 2, "stormspark.worker.port")
        with contextlib.ExitStack() as stack:
            taken = [stack.enter_context(listen(Address("127.0.0.1", None, ports))) for _ in range(2)]
            assert [one.getsockname()[1] for one in taken] == [first + 1, first + 2]
            refusal = rf"no port of {first} to {first + 2} is free at 127\.0\.0\.1: set another stormspark\.worker\.port"
            with pytest.raises(UnsupportedEnvironmentError, match=refusal):
                listen(Address("127.0.0.1", None, ports))


# -- encryption ----------------------------------------------------------------------------------------------


class Recorder:
    """Passes on what two sides of a connection say, and keeps it."""

    def __init__(self, target):
        self.said = bytearray()
        self.ended = threading.Semaphore(0)  # one side has no more to say
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.endpoint = Endpoint(ELSEWHERE, self._listening.getsockname())
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                one, _ = self._listening.accept()
                other = socket.create_connection(self._target)
                for pair in ((one, other), (other, one)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, one, other):
        with contextlib.suppress(OSError), one:
            while data := one.recv(65536):
                self.said += data
                other.sendall(data)
        self.ended.release()
        with contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@pytest.mark.parametrize(("key", "is_seen"), [(KEY, True), (TLS, False)], ids=["plain", "tls"])
def test_an_eavesdropper_reads_messages_unless_they_are_encrypted(make, key, is_seen):
    recorder = Recorder(make(key=key).endpoint.tcp)
    assert says_the_same(recorder.endpoint, key, "a tuple of a user " * 5000)
    recorder.close()
    assert len(recorder.said) > 180_000
    assert (b"a tuple of a user" in recorder.said) is is_seen


def test_another_certificate_is_not_believed(make, seen):
    door = make(key=TLS)
    with pytest.raises(ssl.SSLError):
        dial(by_tcp(door), Key(KEY.secret, new_certificate("another test")))
    assert not seen


@pytest.mark.slow
def test_a_peer_that_does_not_encrypt_gets_nowhere(make, seen):
    with pytest.raises(OSError):  # noqa: PT011 - whatever the TLS library makes of it
        dial(by_tcp(make(key=TLS)), KEY, silence_secs=1)
    with pytest.raises(OSError):  # noqa: PT011
        dial(by_tcp(make(key=KEY)), TLS, silence_secs=1)
    assert not seen


@pytest.mark.slow
@pytest.mark.parametrize("key", [KEY, TLS], ids=["plain", "tls"])
def test_one_thread_receives_while_another_sends(make, key):
    """More than the sockets' buffers hold, both ways at a time."""
    message = os.urandom(8_000_000)
    with dial(by_tcp(make(key=key)), key) as connection:

        def send():
            for _ in range(3):
                connection.send(message)

        sender = threading.Thread(target=send)
        sender.start()
        assert all(connection.recv() == message for _ in range(3))
        sender.join()


def test_what_is_sent_while_another_thread_hangs_up_never_leaves_in_plain_text(make, monkeypatch):
    """In that moment TLS has to be there still, or the connection to be closed."""
    recorder = Recorder(make(key=TLS).endpoint.tcp)
    raised = []
    with dial(recorder.endpoint, TLS) as connection:
        shut = socket.socket.shutdown

        def while_another_one_sends(sock, how):
            if sock is connection.socket:
                try:
                    connection.send(b"a tuple of a user" * 100)
                except OSError as error:
                    raised.append(error)
            shut(sock, how)

        monkeypatch.setattr(socket.socket, "shutdown", while_another_one_sends)
        connection.hang_up()
        monkeypatch.undo()
        with pytest.raises(OSError):  # noqa: PT011 - whatever the TLS library makes of it
            connection.send(b"a tuple of a user" * 100)
        recorder.ended.acquire(timeout=30)
    recorder.close()
    assert b"a tuple of a user" not in recorder.said


@pytest.mark.parametrize("key", [KEY, TLS], ids=["plain", "tls"])
def test_who_reads_when_another_thread_hangs_up_takes_nothing_for_a_length_that_is_none(make, key):
    with dial(by_tcp(make(key=key)), key) as connection:
        connection.send(b"a tuple of a user" * 1000)
        assert select.select([connection], [], [], 30)[0], "the answer has come, at least its beginning"
        connection.hang_up()
        with pytest.raises((OSError, EOFError)):  # noqa: PT012 - what had come may still be read
            for _ in range(2):
                connection.recv()


@pytest.mark.slow
def test_a_connection_is_not_closed_in_the_middle_of_a_call_of_another_thread(make, monkeypatch):
    """To close is to forget TLS, then to let go of the descriptor: nobody may send in between."""
    with dial(by_tcp(make(key=TLS)), TLS) as connection:
        sent, senders = [], []
        closes = socket.socket._real_close  # type: ignore[attr-defined]

        def send():
            with contextlib.suppress(OSError):
                connection.send("in plain text")
                sent.append(True)

        def while_another_one_sends(sock, *args):
            if sock is connection.socket and not senders:
                sender = threading.Thread(target=send)
                senders.append(sender)
                sender.start()
                sender.join(0.5)
            closes(sock, *args)

        monkeypatch.setattr(socket.socket, "_real_close", while_another_one_sends)
        connection.close()
        senders[0].join(30)
        assert not sent


@pytest.mark.parametrize("key", [KEY, TLS], ids=["plain", "tls"])
def test_poll_tells_of_a_message_and_of_the_end(make, key):
    with dial(by_tcp(make(key=key)), key) as connection:
        assert not connection.poll(0)
        connection.send("one")
        connection.send("two")
        assert connection.poll(10)
        assert connection.poll(0)
        assert connection.recv() == "one"
        assert connection.poll(10)
        assert connection.recv() == "two"
        socket.socket.shutdown(
            connection.socket, socket.SHUT_WR
        )  # not the one that ends TLS, and reads what is encrypted
        assert connection.poll(10)
        with pytest.raises((EOFError, ssl.SSLError)):  # TLS tells an end without a good-bye from one with it
            connection.recv()


def test_spark_says_whether_to_encrypt():
    def key(of_spark, wanted=None):
        return encrypting_key(lambda name: of_spark.get(name), wanted)  # noqa: PLW0108 - of which `get` has several types

    assert key({}) is None
    assert key({"spark.ssl.rpc.enabled": "true"}) == "spark.ssl.rpc.enabled"
    assert key({}, True) == "stormspark.network.crypto.enabled"
    assert key({"spark.network.crypto.enabled": "false"}, False) is None
    with pytest.raises(UnsupportedEnvironmentError, match=r"spark\.network\.crypto\.enabled"):
        key({"spark.network.crypto.enabled": "true"}, False)


def test_no_certificate_without_the_package_that_makes_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(
        UnsupportedEnvironmentError, match=r"^spark\.ssl\.rpc\.enabled demands .* pip install"
    ) as refused:
        new_certificate("spark.ssl.rpc.enabled")
    assert "\n" not in str(refused.value)


# -- strangers -----------------------------------------------------------------------------------------------


def test_a_silent_stranger_locks_nobody_out(door):
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(door.endpoint.unix)
        assert says_the_same(door.endpoint)


NOISE = {
    "nothing": b"",
    "http": b"GET / HTTP/1.1\r\n\r\n",
    "a huge length": b"\xff" * 8,
    "zeros": bytes(1000),
    "half a length": b"\x00\x00",
    "an answer that is none": (20).to_bytes(8, "big") + b"x" * 20,
    "the beginning of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}


@pytest.mark.parametrize("key", [KEY, TLS], ids=["plain", "tls"])
@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
def test_a_stranger_that_talks_nonsense(make, key, noise, seen):
    door = make(key=key)
    with socket.create_connection(door.endpoint.tcp) as stranger:
        stranger.sendall(noise)
        assert says_the_same(by_tcp(door), key)
    with socket.create_connection(door.endpoint.tcp) as stranger:
        stranger.sendall(noise)
    assert says_the_same(by_tcp(door), key)
    assert len(seen) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "count"),
    [pytest.param(KEY, 300, id="plain"), pytest.param(TLS, 100, id="tls", marks=pytest.mark.long)],
)
def test_hundreds_of_silent_strangers(make, key, count, seen, monkeypatch):
    """They are few at a time, each is dropped after seconds, and who knows the key comes in meanwhile."""
    monkeypatch.setattr(link, "_HANDSHAKE_SECS", 4.0)
    door = make(key=key)
    with contextlib.ExitStack() as stack:
        with dial(by_tcp(door), key) as old:
            strangers = [
                stack.enter_context(socket.create_connection(door.endpoint.tcp, 10)) for _ in range(count)
            ]
            with dial(by_tcp(door), key, silence_secs=60) as new:
                new.send("let in")
                assert new.recv() == "let in"
            old.send("still here")
            assert old.recv() == "still here"
            assert sum(thread.name == "echo" for thread in threading.enumerate()) <= STRANGERS + 5
        for stranger in strangers:
            stranger.settimeout(60)
            with contextlib.suppress(ConnectionResetError):
                while stranger.recv(1000):
                    pass  # the challenge
    assert len(seen) == 2


@pytest.mark.slow
def test_a_door_outlives_a_shortage_of_descriptors():
    """And waits for it to end without turning round and round."""
    script = """
import logging, os, resource, sys, tempfile, threading, time
from stormspark.worker.host.key import Key
from stormspark.worker.host.link import Door, dial

key = Key(b"k" * 32)
is_short = threading.Event()
class Tells(logging.StreamHandler):
    def emit(self, record):
        super().emit(record)
        is_short.set()
logging.getLogger().addHandler(Tells())
with tempfile.TemporaryDirectory() as folder:
    door = Door(folder + "/door", None, key, lambda connection: connection.send(connection.recv()), "short")
    def call(said):
        with dial(door.endpoint, key, 60) as connection:
            connection.send("hello")
            said.append(connection.recv())
    call([])
    for thread in threading.enumerate():
        if thread.name == "short":
            thread.join()
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    hoard = []
    try:
        while True:
            hoard.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        os.close(hoard.pop())
    while True:
        try:
            first = dial(door.endpoint, key)
            break
        except OSError:  # accept has taken the free descriptor; usually it has one since before the shortage
            os.close(hoard.pop())
    assert is_short.wait(60)
    os.close(hoard.pop())  # for the one who dials
    said = []
    caller = threading.Thread(target=call, args=(said,))
    caller.start()
    before = time.process_time()
    caller.join(2)
    print("waits", caller.is_alive(), "spins", time.process_time() - before > 1)
    for descriptor in hoard:
        os.close(descriptor)
    caller.join(60)
    print(said)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.splitlines() == ["waits True spins False", "['hello']"], done.stderr
    assert done.stderr.count("takes no new connections for now") == 1


# -- waiting -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_one_who_listens_and_never_answers_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(TimeoutError, match="took too long"):
        dial(Endpoint(ELSEWHERE, silent.getsockname()), KEY, silence_secs=1)


def test_one_who_is_turned_away_comes_again(door):
    """The first three connections are closed before a word is said."""
    with socket.create_server(("127.0.0.1", 0)) as crowded:

        def turn_away():
            for _ in range(3):
                crowded.accept()[0].close()
            one, _ = crowded.accept()
            with one, socket.create_connection(door.endpoint.tcp) as other:
                back = threading.Thread(target=_pass_on, args=(other, one), daemon=True)
                back.start()
                _pass_on(one, other)
                back.join()

        threading.Thread(target=turn_away, daemon=True).start()
        assert says_the_same(Endpoint(ELSEWHERE, crowded.getsockname()))


def test_something_else_at_that_port():
    with socket.create_server(("127.0.0.1", 0)) as other:

        def greet():
            one, _ = other.accept()
            with one:
                one.sendall((10).to_bytes(8, "big") + b"220 smtp\r\n")
                one.recv(1000)

        threading.Thread(target=greet, daemon=True).start()
        with pytest.raises((AuthenticationError, OSError)):
            dial(Endpoint(ELSEWHERE, other.getsockname()), KEY, silence_secs=1)


@pytest.mark.slow
@pytest.mark.parametrize("key", [KEY, TLS], ids=["plain", "tls"])
def test_a_side_that_is_busy_for_longer_than_the_silence_is_not_given_up(tmp_path, key):
    """Its kernel answers. TCP_USER_TIMEOUT would end this connection."""
    done, sizes = threading.Event(), []

    def serve(connection):
        done.wait()
        sizes.append(len(connection.recv()))

    door = Door(str(tmp_path / "door"), Address("127.0.0.1"), key, serve, "busy", silence_secs=1)
    with dial(by_tcp(door), key, silence_secs=1) as connection:
        sender = threading.Thread(target=connection.send, args=(bytes(30_000_000),))
        sender.start()
        sender.join(4)
        assert sender.is_alive(), "more than sockets hold"
        done.set()
        sender.join()
        assert connection.poll(30), "it hangs up after that"
    assert sizes == [30_000_000]
    door.close()


def test_a_message_that_must_not_take_long():
    near, far = socket.socketpair()
    with Connection(near) as connection, far, pytest.raises(TimeoutError):
        connection.send(bytes(30_000_000), timeout=0.1)


# -- the end -------------------------------------------------------------------------------------------------


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
    assert os.path.exists(door.endpoint.unix)
    dead = tmp_path / "dead"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(dead))
    remove_if_dead(Endpoint(str(dead)))
    assert not dead.exists()


def _pass_on(one, other):
    with contextlib.suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
    with contextlib.suppress(OSError):
        other.shutdown(socket.SHUT_RDWR)


def test_a_message_over_tls_leaves_the_next_one_where_the_descriptor_shows_it():
    """Whoever waits for many connections at once waits for their descriptors, and knows nothing of OpenSSL."""
    ends = [
        TLS.tls(listens=listens).wrap_socket(sock, server_side=listens, do_handshake_on_connect=False)
        for sock, listens in zip(socket.socketpair(), (True, False), strict=True)
    ]
    with Connection(ends[0]) as one, Connection(ends[1]) as other:
        shaking = threading.Thread(target=one.shake_hands)
        shaking.start()
        other.shake_hands()
        shaking.join()
        for near, far in (one, other), (other, one):
            messages = ["small", bytes(30_000), "again", b""]
            for message in messages:
                near.send(message)  # a socket of this host has them all now
            for polls, message in enumerate(messages):
                assert select.select([far], [], [], 0)[0]
                assert polls % 2 or far.poll(0), "which reads a byte"
                assert far.recv() == message
                assert not far.socket.pending()  # type: ignore[attr-defined]
            assert not far.poll(0)
