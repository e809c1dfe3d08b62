"""Hosts that tests make: they share nothing but a network, all of one ends at once, and nothing is left of any."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.cluster.hosts import NO_TEMPORARY, Hosts
from tests.waiting import PATIENCE_SECS, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.long]

SERVER = """
import socket
server = socket.create_server(('', 7))
print('up', flush=True)
while True:
    server.accept()[0].sendall(b'hello')
"""
CLIENT = """
import socket, sys
client = socket.create_connection((sys.argv[1], 7), float(sys.argv[2]))
sys.exit(client.recv(5) != b'hello')
"""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "file").write_text("for both")
    try:
        made = Hosts(tmp_path / "hosts", {"one": {"/opt/shared": shared}, "two": {}})
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no hosts can be made here: {error}")
    yield made
    made.take_away()


def serve(hosts: Hosts, host: str) -> None:
    ups = hosts[host].said("server").count("up")
    hosts[host].run(f'exec python3 -c "{SERVER}"', "server")
    wait_for(lambda: hosts[host].said("server").count("up") > ups, message=lambda: hosts[host].said("server"))


def hears(hosts: Hosts, host: str, other: str, patience_secs: float = 2) -> bool:
    return hosts[host].run(f'exec python3 -c "{CLIENT}" {other} {patience_secs}', "client").wait() == 0


def wait_until_it_hears(hosts: Hosts, host: str, other: str) -> None:
    """A host that has just asked in vain where the other one is may say for a moment that there is no way to it."""
    wait_for(lambda: hears(hosts, host, other, PATIENCE_SECS), message=lambda: hosts[host].said("client"))


def test_a_host_has_files_a_name_and_processes_of_its_own(hosts: Hosts) -> None:
    said = "hostname; cat /opt/shared/file; ls -A /tmp ~ /root /var/tmp; touch /tmp/mine /opt/shared/mine"
    for name in ("one", "two"):
        hosts[name].run(said, "looks").wait()
    assert hosts["one"].said("looks").startswith("one\nfor both")
    assert "Read-only file system" in hosts["one"].said("looks")
    assert hosts["two"].said("looks").startswith("two\ncat: /opt/shared/file: No such file")
    assert (hosts["one"].folder / "tmp" / "mine").exists()
    hosts["two"].run("ls /tmp", "looks again").wait()
    assert hosts["two"].said("looks again") == "mine\n", "its own"


def test_a_host_may_have_no_temporary_folder(hosts: Hosts) -> None:
    hosts["two"].kill()
    hosts["two"].start(temporary=NO_TEMPORARY)
    hosts["two"].run("touch /tmp/a /var/tmp/a /dev/shm/a; touch ~/a && ls ~", "looks").wait()
    said = hosts["two"].said("looks").splitlines()
    assert len([line for line in said if "Read-only file system" in line]) == 3, said
    assert said[-1] == "a"


def test_a_host_is_cut_off_and_joined_again(hosts: Hosts) -> None:
    serve(hosts, "two")
    wait_until_it_hears(hosts, "one", "two")
    hosts["two"].cut()
    assert not hears(hosts, "one", "two")
    hosts["two"].join()
    wait_until_it_hears(hosts, "one", "two")


def test_all_of_a_host_ends_at_once_and_its_files_stay(hosts: Hosts) -> None:
    serve(hosts, "two")
    hosts["two"].run("(setsid sleep 1000 &) ; touch /tmp/stays; exec sleep 1000", "sleeps")
    wait_for((hosts["two"].folder / "tmp" / "stays").exists)
    processes = hosts["two"].processes()
    assert len(processes) >= 3
    hosts["two"].kill()
    assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)
    assert not hears(hosts, "one", "two")
    hosts["two"].start()
    hosts["two"].run("ls /tmp", "looks").wait()
    assert hosts["two"].said("looks") == "stays\n"
    serve(hosts, "two")
    wait_until_it_hears(hosts, "one", "two")


def test_a_host_that_has_lost_its_power_starts_again(hosts: Hosts) -> None:
    for _ in range(3):
        serve(hosts, "two")
        wait_until_it_hears(hosts, "one", "two")
        hosts["two"].lose_power()
        hosts["two"].start()


def test_nothing_is_left_if_the_process_that_made_hosts_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from tests.cluster.hosts import Hosts\n"
        "hosts = Hosts(Path(sys.argv[1]), {'one': {}}); hosts['one'].run('exec sleep 1000')\n"
        "while not hosts['one'].processes(): pass\n"
        "print(hosts['one'].pid, *(one.pid for one in hosts['one'].processes()), flush=True); time.sleep(1000)"
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "hosts")],
        cwd=root, env=os.environ | {"PYTHONPATH": str(root)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        process.kill()
        if not pids:
            pytest.skip(f"no hosts can be made here: {process.stderr.read().decode()[-200:]}")
    wait_for(lambda: not any(psutil.pid_exists(pid) for pid in pids), message=f"the end of {pids}")
