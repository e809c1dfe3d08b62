"""Files of heronpy's, loaded as ``stormspark run FILE[:NAME]`` loads them."""

from __future__ import annotations

import pickle
import sys
import textwrap

import pytest
from click.testing import CliRunner

from stormspark.cli import main
from stormspark.cli.load import FrontEndOptions, load_topology
from stormspark.errors import InvalidTopologyError, TopologyNotFoundError

pytestmark = pytest.mark.usefixtures("as_it_was")

COMPONENTS = """
    import sys
    from heronpy.api.bolt.bolt import Bolt
    from heronpy.api.spout.spout import Spout
    from heronpy.api.stream import Grouping
    from heronpy.api.topology import Topology, TopologyBuilder

    class Words(Spout):
        outputs = ["word"]

    class Count(Bolt):
        pass

    def build(name, **settings):
        builder = TopologyBuilder(name)
        words = builder.add_spout("words", Words, 1)
        builder.add_bolt("count", Count, 2, {words: Grouping.fields("word")})
        builder.set_config({"arguments": sys.argv[2:], **settings})
        builder.build_and_submit()
"""
MAIN = """
    if __name__ == "__main__":
        if len(sys.argv) < 2:
            sys.exit(1)
        build(sys.argv[1])
"""


@pytest.fixture
def write(tmp_path):
    """Write a file into a folder of its own."""

    def write(text, name="some_heron.py", after=""):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text) + textwrap.dedent(after))
        return str(file)

    return write


def test_a_script_is_run(write):
    """A40, J6: as heron submit runs it, with the topology's name and more arguments."""
    file = write(COMPONENTS, after=MAIN)
    assert load_topology(file).name == "some_heron"
    topology = load_topology(f"{file}:words", FrontEndOptions(arguments=("a", "2")))
    assert topology.name == "words" and topology.conf["arguments"] == ["a", "2"]
    assert sys.argv[0] != file


def test_classes_of_a_script_are_pickled_by_reference(write):
    """A40: a worker imports the file, and what is guarded does not run there."""
    pickled = load_topology(write(COMPONENTS, after=MAIN)).components["count"].pickled
    assert b"some_heron" in pickled and b"process" not in pickled
    assert pickle.loads(pickled).blueprint.component.__module__ == "some_heron"


def test_a_script_without_a_guard(write):
    """A40: it submits when it is imported, so workers must not import it."""
    topology = load_topology(write(COMPONENTS, after="build(sys.argv[1])"))
    assert topology.name == "some_heron"
    del sys.modules["some_heron"]
    assert pickle.loads(topology.components["count"].pickled).blueprint.component.__name__ == "Count"
    assert "some_heron" not in sys.modules


def test_a_class_of_the_file(write):
    """A40, J6: the only one, or the one that is named."""
    file = write(COMPONENTS, after="class One(Topology):\n    words = Words.spec()\n")
    assert load_topology(file).name == load_topology(f"{file}:One").name == "One"
    write(
        COMPONENTS,
        "two_heron.py",
        "class One(Topology):\n    words = Words.spec()\nclass Two(One):\n    w = Words.spec()\n",
    )
    file = file.replace("some_heron", "two_heron")
    assert list(load_topology(f"{file}:Two").components) == ["w"]
    with pytest.raises(TopologyNotFoundError, match=r"has 2 topologies. Did you mean .*:One or .*:Two"):
        load_topology(file)
    with pytest.raises(TopologyNotFoundError, match=r"has no topology 'Three'. Did you mean"):
        load_topology(f"{file}:Three")


def test_the_name_of_the_command_line_wins(write):
    """A44, J6: over the one that the script gives its only topology; of several it chooses."""
    file = write(COMPONENTS, after="if __name__ == '__main__':\n    build('mine')")
    assert (load_topology(file).name, load_topology(f"{file}:yours").name) == ("mine", "yours")
    file = write(COMPONENTS, "both_heron.py", "if '__main__' == __name__:\n    build('a'); build('b')")
    assert load_topology(f"{file}:b").name == "b"
    with pytest.raises(TopologyNotFoundError, match=r"submits 2 topologies.* choose one, .*:a or .*:b"):
        load_topology(file)


def test_what_is_imported_from_above(write, tmp_path):
    """J6: Heron's archives have a root from which all is imported."""
    write(COMPONENTS, "project/src/parts.py")
    file = write(
        "from project.src.parts import Words\nfrom heronpy.api.topology import Topology\n"
        "class T(Topology):\n    words = Words.spec()\n",
        "project/topologies/deep_heron.py",
    )
    topology = load_topology(file)
    assert (
        pickle.loads(topology.components["words"].pickled).blueprint.component.__module__
        == "project.src.parts"
    )
    assert str(tmp_path) in sys.path


@pytest.mark.parametrize(
    ("after", "problem"),
    [
        (
            "if __name__ == '__main__':\n    sys.exit(3)",
            "ended with exit code 3 and the arguments .*; --arg A gives it one more",
        ),
        (
            "if __name__ == '__main__':\n    1 / 0",
            "ZeroDivisionError: division by zero\n  at .*some_heron.py:22",
        ),
        ("if __name__ == '__main__':\n    build('')", "some_heron.py:15: a topology's name must be"),
        ("1 / 0", "importing .* raised ZeroDivisionError"),
        ("", "has no topology: it needs a class that inherits from"),
        (
            "class T(Topology):\n    count = Count.spec()",
            "some_heron.py:22: bolt 'count'.*requires at least one input",
        ),
    ],
)
def test_what_goes_wrong_is_reported_with_its_line(write, after, problem):
    """A41, J6: in the user's file."""
    with pytest.raises((TopologyNotFoundError, InvalidTopologyError), match=problem):
        load_topology(write(COMPONENTS, after="\n" + after))


def test_on_the_command_line(write):
    """A40: explain knows a script's arguments too."""
    file = write(COMPONENTS, after=MAIN)
    done = CliRunner().invoke(main, ["explain", f"{file}:demo", "--arg", "1", "--format", "text"])
    assert done.exit_code == 0, done.output
    assert "topology demo: 2 components, 3 tasks" in done.stdout and "fields(word)" in done.stdout
