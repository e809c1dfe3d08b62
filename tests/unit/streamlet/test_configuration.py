"""Config, Resources, WindowConfig, and how a topology is handed over."""

from __future__ import annotations

from datetime import timedelta

import pytest

from stormspark import Count, Duration
from stormspark.errors import InvalidTopologyError
from stormspark.plan import plan_topology
from stormspark.streamlet import Builder, Config, KeyedWindow, Resources, Runner, Window, WindowConfig
from stormspark.streamlet.submission import capturing


def built(config: Config | None = None, seconds: int = 0) -> dict[str, object]:
    builder = Builder()
    streamlet = builder.new_source(lambda: ("a", 1))
    if seconds:
        streamlet.reduce_by_key_and_window(WindowConfig.create_sliding_window(seconds, 5), lambda a, b: a)
    topology = builder.build("t", config)
    plan_topology(topology)
    return dict(topology.conf)


def semantics(which: int) -> Config:
    config = Config()
    config.set_delivery_semantics(which)
    return config


def test_without_a_word_nothing_is_tracked():
    """G24, A43: as in Heron."""
    assert built() == built(Config())
    assert built() == {"topology.acker.executors": 0, "topology.enable.message.timeouts": False}


def test_delivery_semantics_are_those_of_the_engine():
    """Each delivery semantics becomes the engine's settings, and other values are rejected (G24, C43)."""
    at_most, at_least, exactly = (
        semantics(n) for n in (Config.ATMOST_ONCE, Config.ATLEAST_ONCE, Config.EFFECTIVELY_ONCE)
    )
    assert built(at_most)["topology.acker.executors"] == 0
    assert "topology.acker.executors" not in built(at_least)
    assert built(exactly)["topology.reliability.mode"] == "EFFECTIVELY_ONCE"
    with pytest.raises(InvalidTopologyError, match=r"must be Config\.ATMOST_ONCE"):
        Config().set_delivery_semantics(4)
    with pytest.raises(InvalidTopologyError, match="must be one of ATMOST_ONCE"):
        built(Config({"topology.reliability.mode": "ONCE"}))


def test_message_timeouts_cover_the_windows():
    """G24, C27: unless they are given."""
    assert built(semantics(Config.ATLEAST_ONCE), seconds=60)["topology.message.timeout.secs"] == 95
    config = semantics(Config.ATLEAST_ONCE)
    config.set_user_config("topology.message.timeout.secs", 70)
    assert built(config, seconds=60)["topology.message.timeout.secs"] == 70


def test_where_nothing_is_tracked_windows_may_be_longer_than_the_message_timeout():
    """G24, C26: Heron looks at no timeout then."""
    config = Config({"topology.message.timeout.secs": 7})
    assert built(config, seconds=60)["topology.message.timeout.secs"] == 7


def test_containers_are_workers_and_resources_are_kept():
    """Containers become workers, and their resources are kept as settings (G24, A46)."""
    config = Config({"mine": 1})
    config.set_num_containers(3)
    config.set_container_resources(Resources().set_cpu(2).set_ram_in_gb(1))
    conf = built(config)
    assert (conf["mine"], conf["topology.workers"]) == (1, 3)
    assert (conf["topology.container.cpu"], conf["topology.container.ram"]) == (2.0, 1 << 30)
    for wrong in (lambda: config.set_container_resources(2), lambda: Config([])):  # type: ignore[arg-type]
        with pytest.raises(InvalidTopologyError, match=r"test_configuration.py:\d+"):
            wrong()


def test_resources():
    """G24: megabytes are 1024 times 1024 bytes."""
    resources = Resources().set_cpu("1.5").set_ram_in_mb(3)  # type: ignore[arg-type]
    assert (resources.get_cpu(), resources.get_ram()) == (1.5, 3 * 1024 * 1024)
    assert repr(resources) == "Resource {cpu: 1.5, ram: 3145728}"


@pytest.mark.parametrize("length", [90, 90.0, timedelta(seconds=90), Duration.seconds(90)])
def test_windows_are_given_as_seconds_or_timedeltas(length):
    """G24: and may be longer than a day, which Heron's Python cuts off."""
    config = WindowConfig.create_sliding_window(length, timedelta(days=2))
    assert (config.length, config.slide) == (Duration(90_000), Duration.days(2))
    assert WindowConfig.create_tumbling_window(length).slide == Duration(90_000)


def test_windows_that_count_elements():
    """Sliding and tumbling windows can be counts of elements (G23)."""
    assert WindowConfig.create_sliding_count_window(10, 5).slide == Count(5)
    assert WindowConfig.create_tumbling_count_window(10).slide == Count(10)


@pytest.mark.parametrize("length", [0, -1, "10", None, True, timedelta(0)])
def test_windows_that_cannot_be_are_refused(length):
    """A window without a positive length is rejected, with the user's line (G24)."""
    with pytest.raises(
        InvalidTopologyError, match=r"test_configuration.py:\d+: the length of a window must be"
    ):
        WindowConfig.create_sliding_window(length, 1)


def test_windows_and_keyed_windows_are_values():
    """G24: in Heron two of them are never equal."""
    window = Window(0.0, 10.0)
    assert KeyedWindow("a", window) == KeyedWindow("a", Window(0.0, 10.0)) != KeyedWindow("b", window)
    assert (KeyedWindow("a", window)._key, KeyedWindow("a", window)._window._end_time) == ("a", 10.0)
    with pytest.raises(InvalidTopologyError, match="must be a Window"):
        KeyedWindow("a", 10)  # type: ignore[arg-type]


def test_a_runner_hands_its_topology_to_the_loader_of_the_file():
    """A runner hands its topology to the innermost loader that captures submissions (G24)."""
    builder = Builder()
    builder.new_source(lambda: 1).log()
    config = Config({"mine": 2})
    with capturing() as submitted:
        Runner().run("mine", config, builder)
        with capturing() as inside:
            Runner().run("other", config, builder)
    assert [topology.name for topology in submitted] == ["mine"]
    assert [topology.name for topology in inside] == ["other"]
    assert submitted[0].conf["mine"] == 2


def test_a_runner_that_nobody_listens_to_says_what_to_do():
    """A runner outside `stormspark run` raises an error that says how to run the file (G24)."""
    with pytest.raises(InvalidTopologyError, match=r"test_configuration.py:\d+: .*stormspark run FILE"):
        Runner().run("mine", Config(), Builder())


@pytest.mark.parametrize(
    ("name", "config", "builder"), [(1, Config(), Builder()), ("a", {}, Builder()), ("a", Config(), 1)]
)
def test_a_runner_takes_a_name_a_config_and_a_builder(name, config, builder):
    """A runner rejects arguments of a wrong type, with the argument's name (G24)."""
    with (
        capturing(),
        pytest.raises(InvalidTopologyError, match=r"Runner\(\).run: (name|config|builder) must be a"),
    ):
        Runner().run(name, config, builder)
