"""What Spark's configuration says of connections between hosts, as it is read; and room for descriptors."""

from __future__ import annotations

import resource
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from stormspark.config import Settings
from stormspark.errors import InvalidTopologyError, UnsupportedEnvironmentError
from stormspark.spark.layout import Layout
from stormspark.spark.network import Network
from stormspark.worker.host.addresses import Address, Ports, executor_hosts


def network(master, spark=None, **settings):
    """Of a context without a default parallelism: that says nothing of how many processes connect."""
    context = SimpleNamespace(
        master=master, getConf=lambda: {"spark.driver.host": "10.0.0.1"} | (spark or {})
    )
    own = {f"stormspark.{key.replace('_', '.')}": value for key, value in settings.items()}
    spark_session: Any = SimpleNamespace(sparkContext=context)
    return Network.of(spark_session, Settings.read(own))


@pytest.mark.parametrize("master", ["local", "local[*]", "local[4,4]"])
def test_nothing_is_opened_to_the_network_where_all_of_spark_is_one_process(master):
    assert network(master, {"spark.network.crypto.enabled": "true"}).address is None
    assert network(master, {"spark.network.crypto.enabled": "true"}).certificate == b""


def test_nor_for_a_cluster_of_processes_on_this_host():
    for host in ("localhost", "127.0.0.1", "[::1]"):
        assert network("local-cluster[2,1,1024]", {"spark.driver.host": host}).address is None


def test_nothing_is_refused_for_its_encryption_where_nothing_is_sent():
    for master, host in (("local[*]", "10.0.0.1"), ("local-cluster[2,1,1024]", "127.0.0.1")):
        conf = {"spark.network.crypto.enabled": "true", "spark.driver.host": host}
        assert network(master, conf, network_crypto_enabled=False).certificate == b""


def test_workers_of_other_hosts_or_users_have_their_own_default_folder_for_logs():
    drivers = "/tmp/stormspark-logs-alice/words"
    assert network("local[*]").workers_log_folder(None, drivers) == drivers
    assert network("yarn").workers_log_folder(None, drivers) is None
    for master in ("local[*]", "yarn"):
        assert network(master).workers_log_folder("/logs", "/logs") == "/logs"


@pytest.mark.parametrize(("named", "told"), [(None, None), ("/logs", "/logs")])
def test_workers_get_that_address(named, told):
    layout: Any = object.__new__(Layout)
    settings = Settings.read({} if named is None else {"stormspark.log.dir": named})
    layout.plan = SimpleNamespace(
        topology="words", workers=1, partitions=1, last_superstep=0, settings=settings
    )
    layout.generation = 0
    layout.nimbus = SimpleNamespace(endpoint=None, key=b"")
    folder = named or "/tmp/stormspark-logs-alice/words"
    layout._premises = SimpleNamespace(network=network("yarn"), log_folder=folder)
    assert layout._attempt(0, "").log_folder == told


@pytest.mark.parametrize(
    ("conf", "address"),
    [
        ({}, Address("10.0.0.1", None, Ports(0, 16, "stormspark.nimbus.port"))),
        (
            {"spark.driver.bindAddress": "0.0.0.0", "spark.port.maxRetries": "3"},
            Address("10.0.0.1", "0.0.0.0", Ports(0, 3, "stormspark.nimbus.port")),
        ),
        (
            {"spark.driver.host": "[fd00::1]", "spark.driver.bindAddress": "[::]"},
            Address("fd00::1", "::", Ports(0, 16, "stormspark.nimbus.port")),
        ),
    ],
)
def test_the_drivers_address_is_sparks(conf, address):
    assert network("spark://master:7077", conf).address == address


def test_ports_are_ours():
    found = network(
        "yarn", {"spark.port.maxRetries": "3"}, nimbus_port=4000, worker_port=5000, port_max_retries=9
    )
    assert found.address.ports[:2] == (4000, 9)
    assert found.worker_ports[:2] == (5000, 9)
    assert found.silence_secs == 15


def test_a_port_that_is_none():
    with pytest.raises(
        InvalidTopologyError, match=r"stormspark\.nimbus\.port must be at most 65535, got 70000"
    ):
        network("yarn", nimbus_port=70000)


def test_encrypted_where_spark_encrypts():
    assert network("yarn").certificate == b""
    assert network("yarn", network_crypto_enabled=True).certificate.startswith(b"-----BEGIN CERTIFICATE")
    assert network("yarn", {"spark.ssl.rpc.enabled": "TRUE"}).certificate
    with pytest.raises(UnsupportedEnvironmentError, match=r"stormspark\.network\.crypto\.enabled is false"):
        network("yarn", {"spark.ssl.rpc.enabled": "true"}, network_crypto_enabled=False)


@pytest.mark.parametrize(
    ("command", "environment", "hosts"),
    [
        ([], {}, (None, None)),
        (["--hostname", "h"], {}, ("h", None)),
        (["--bind-address", "10.1.1.1", "--hostname", "[fd00::2]"], {}, ("fd00::2", "10.1.1.1")),
        ([], {"SPARK_LOCAL_IP": "10.1.1.1"}, ("10.1.1.1", "10.1.1.1")),
        ([], {"SPARK_LOCAL_IP": "10.1.1.1", "SPARK_LOCAL_HOSTNAME": "out"}, ("out", "10.1.1.1")),
        (["--hostname", "h"], {"SPARK_LOCAL_HOSTNAME": "out"}, ("h", None)),
    ],
)
def test_a_worker_is_reached_as_its_executor_is(command, environment, hosts):
    assert executor_hosts(command, environment) == hosts


ROOM = """
import resource, sys
from stormspark.worker.host.descriptors import make_room
resource.setrlimit(resource.RLIMIT_NOFILE, (100, int(sys.argv[1])))
try:
    make_room(int(sys.argv[2]), "this test")
except Exception as error:
    print(error)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def room(hard, connections):
    words = [sys.executable, "-c", ROOM, str(hard), str(connections)]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()


@pytest.mark.slow
def test_the_soft_limit_is_raised_as_far_as_is_allowed():
    """How many will connect is not known before: Spark's default parallelism is no number of processes."""
    assert room(1000, 1) == ["1000"]
    assert room(1000, 200) == ["1000"]


@pytest.mark.slow
def test_a_soft_limit_is_never_lowered():
    script = ROOM.replace("(100, int(sys.argv[1]))", "(int(sys.argv[1]),) * 2")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = 100_000 if hard == resource.RLIM_INFINITY else min(hard, 100_000)
    words = [sys.executable, "-c", script, str(most), "10"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == f"{most}\n"


@pytest.mark.slow
def test_a_hard_limit_that_is_too_low_is_reported_in_one_line():
    refused, limit = room(200, 1000)
    assert refused.startswith("this test needs 10") and "may have 200: raise the hard limit" in refused
    assert limit == "100"
