import pytest

from stormspark import flux
from stormspark.errors import InvalidTopologyError
from stormspark.flux.class_names import class_named
from stormspark.flux.storm_classes import STORM_CLASSES
from stormspark.testing import IdentityBolt, TestWordCounter


def refused(name):
    with pytest.raises(InvalidTopologyError) as caught:
        class_named(name, "t.yaml:3: bolt 'x'")
    assert str(caught.value).startswith("t.yaml:3: bolt 'x': ")
    return str(caught.value)


@pytest.mark.parametrize("name", STORM_CLASSES)
def test_each_of_storms_classes_is_there(name):
    """K23: the table of Storm's classes leads to Python that can be called."""
    found = class_named(name, "here")
    assert callable(found) or hasattr(found, "__name__")


def test_old_packages_are_todays():
    """K23: backtype.storm is org.apache.storm, com.twitter.heron is org.apache.heron."""
    assert class_named("backtype.storm.testing.TestWordCounter", "here") is TestWordCounter
    assert class_named("com.twitter.heron.api.tuple.Fields", "here").__name__ == "fields"


@pytest.mark.parametrize("path", ["stormspark.testing.TestWordCounter", "stormspark.testing:TestWordCounter"])
def test_a_dotted_path_is_python(path):
    """K23: a class that is no Java one."""
    assert class_named(path, "here") is TestWordCounter


def test_nested_classes_are_found():
    """K23: Outer.Inner, and Outer$Inner as Java writes it."""
    assert class_named("tests.unit.flux.parts.Thing.of_color", "here").__name__ == "of_color"
    assert class_named("tests.unit.flux.parts.Thing$of_color", "here").__name__ == "of_color"


def test_what_was_registered_wins_over_storms():
    """K23: a user's own class, or the path of one, may stand for one of Storm's too."""
    flux.register("com.acme.MyBolt", IdentityBolt)
    assert class_named("com.acme.MyBolt", "here") is IdentityBolt
    flux.register("org.apache.storm.flux.wrappers.bolts.LogInfoBolt", "stormspark.testing.IdentityBolt")
    assert class_named("org.apache.storm.flux.wrappers.bolts.LogInfoBolt", "here") is IdentityBolt
    own = {"com.acme.MyBolt": "stormspark.testing.TestWordCounter"}
    assert class_named("com.acme.MyBolt", "here", own) is TestWordCounter


@pytest.mark.parametrize(("name", "factory"), [("", len), (7, len), ("com.acme.A", 7)])
def test_what_can_t_be_registered_is_refused(name, factory):
    """K23: a name and something that can be called."""
    with pytest.raises(InvalidTopologyError, match=r"register.* needs"):
        flux.register(name, factory)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "com.acme.MyBolt",
            "stormspark.flux.register('com.acme.MyBolt', YourClass) in a file flux_classes.py beside the YAML",
        ),
        ("com.acme.MyBolt", "com.acme.MyBolt: your_module.YourClass under classNames:"),
        ("org.apache.storm.testing.TestWordSpot", "Did you mean org.apache.storm.testing.TestWordSpout"),
        ("org.apache.flux.LogInfoBolt", "Did you mean org.apache.storm.flux.wrappers.bolts.LogInfoBolt?"),
        (
            "org.apache.storm.hbase.bolt.HBaseBolt",
            "HBase is not provided: write a bolt that does what HBaseBolt did",
        ),
        ("storm.kafka.KafkaSpout", "put org.apache.storm.kafka.spout.KafkaSpout in its place"),
        ("org.apache.storm.kafka.ZkHosts", "finds the brokers by ZooKeeper, which Kafka has no more"),
        (
            "org.apache.storm.redis.bolt.RedisStoreBlot",
            "Did you mean org.apache.storm.redis.bolt.RedisStoreBolt?",
        ),
        (
            "stormspark.testing.TestWordCuonter",
            "the module stormspark.testing has no TestWordCuonter: did you mean TestWordCounter?",
        ),
        ("tests.unit.flux.parts.NOT_CALLABLE", "must be a class or a function, got 7 of type int"),
        ("io.acme.MyBolt", "no Python is known for the class io.acme.MyBolt"),
        (
            "my_bolts.Shout",
            "there is no module my_bolts, neither beside the YAML nor in this Python: put my_bolts.py beside",
        ),
        ("no such thing", "no Python is known for the class no such thing"),
        ("..", "no Python is known"),
    ],
)
def test_an_unknown_class_is_reported(name, told):
    """K23, K12: who names it where, what is near, what is not provided, and how to say what stands for it."""
    assert told in refused(name)


def test_a_registered_path_that_leads_nowhere_is_reported():
    """K23: the class name, and what it should have stood for."""
    flux.register("com.acme.MyBolt", "no_such_module.MyBolt")
    assert "no_such_module.MyBolt stands for com.acme.MyBolt, but can't be found" in refused(
        "com.acme.MyBolt"
    )
    flux.register("com.acme.MyBolt", "stormspark.testing.NoSuchBolt")
    assert "the module stormspark.testing has no NoSuchBolt" in refused("com.acme.MyBolt")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "import no_such_module_at_all",
            "ModuleNotFoundError: No module named 'no_such_module_at_all'\n  at ",
        ),
        ("x = 1 / 0", "ZeroDivisionError: division by zero\n  at "),
        ("def (", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
    ],
)
def test_what_a_module_raises_is_reported(text, told, write, monkeypatch, tmp_path):
    """K23: the user's own line."""
    write(text, "broken_part.py")
    monkeypatch.syspath_prepend(tmp_path)
    message = refused("broken_part.MyBolt")
    assert "importing broken_part" in message
    assert told in message


def test_modules_beside_the_file_are_found(write):
    """K23: by this process, and by workers, which import them by PYTHONPATH."""
    import os

    write(
        "from stormspark.testing import TestWordCounter\nclass Mine(TestWordCounter): ...\n", "beside_it.py"
    )
    file = write("""
        name: t
        spouts:
        - {id: s, className: org.apache.storm.testing.TestWordSpout}
        bolts:
        - {id: b, className: beside_it.Mine}
        streams:
        - {from: s, to: b, grouping: {type: SHUFFLE}}
        """)
    assert flux.load(file).components["b"].type_name == "Mine"
    assert str(file.parent) in os.environ["PYTHONPATH"].split(os.pathsep)


def test_a_file_of_classes_beside_it_is_imported_first(write):
    """K23: flux_classes.py registers users' own, so that the YAML need not be changed."""
    write(
        "from stormspark import flux\nfrom stormspark.testing import TestWordCounter\n"
        "class Mine(TestWordCounter): ...\nflux.register('com.acme.Counter', Mine)\n",
        "flux_classes.py",
    )
    topology = flux.load(
        write("""
        name: t
        classNames: {com.acme.Words: org.apache.storm.testing.TestWordSpout, com.acme.Log: stormspark.testing.TestGlobalCount}
        spouts:
        - {id: s, className: org.apache.storm.testing.TestWordSpout}
        bolts:
        - {id: b, className: com.acme.Counter}
        - {id: c, className: com.acme.Log}
        streams:
        - {from: s, to: b, grouping: {type: SHUFFLE}}
        - {from: b, to: c, grouping: {type: SHUFFLE}}
        """)
    )
    assert [c.type_name for c in topology.components.values()] == ["TestWordSpout", "Mine", "TestGlobalCount"]
