import os
import pickle
import sys
import textwrap

import pytest

from stormspark.api.topology import Topology
from stormspark.cli.load import FrontEndOptions, load_topology, parse_target
from stormspark.errors import InvalidTopologyError, TopologyNotFoundError

TOPOLOGY = """
    from stormspark import Fields, Spout, TopologyBuilder

    class Numbers(Spout):
        def open(self, conf, context, collector): ...
        def next_tuple(self): ...
        def declare_output_fields(self, declarer): declarer.declare(Fields("n"))

    def build(name="numbers"):
        builder = TopologyBuilder()
        builder.set_spout("numbers", Numbers())
        return builder.create_topology(name)
"""


@pytest.fixture
def write(tmp_path):
    """Write a file into a folder of its own."""

    def write(text, name="some_topology.py", after=""):
        file = tmp_path / name
        file.write_text(textwrap.dedent(text) + textwrap.dedent(after))
        return str(file)

    return write


def refused(target):
    with pytest.raises(TopologyNotFoundError) as caught:
        load_topology(target)
    message = str(caught.value)
    assert len(message.splitlines()) <= 2
    return message


@pytest.mark.parametrize(
    ("text", "file", "name"),
    [
        ("a.py", "a.py", "build"),
        ("a.py:main", "a.py", "main"),
        ("dir/a.py:main", "dir/a.py", "main"),
        ("C:\\dir\\a.py", "C:\\dir\\a.py", "build"),
        ("a.py:", "a.py:", "build"),
        ("strange:file.py", "strange:file.py", "build"),
    ],
)
def test_a_target_is_a_file_and_a_name(text, file, name):
    target = parse_target(text)
    assert (str(target.file), target.name) == (file, name)


def test_build_is_called_by_default(write):
    topology = load_topology(write(TOPOLOGY))
    assert isinstance(topology, Topology)
    assert topology.name == "numbers"


def test_a_function_can_be_named(write):
    file = write(TOPOLOGY, after="def other(): return build('others')")
    assert load_topology(f"{file}:other").name == "others"


def test_a_variable_can_be_named(write):
    file = write(TOPOLOGY, after="topology = build('variable')")
    assert load_topology(f"{file}:topology").name == "variable"


def test_components_are_pickled_by_reference(write):
    topology = load_topology(write(TOPOLOGY))
    pickled = topology.components["numbers"].pickled
    assert b"some_topology" in pickled
    assert type(pickle.loads(pickled)).__module__ == "some_topology"


def test_the_neighbours_of_a_file_can_be_imported(write):
    write("NAME = 'of a neighbour'", "some_neighbour.py")
    file = write(TOPOLOGY, after="import some_neighbour\ndef other(): return build(some_neighbour.NAME)")
    assert load_topology(f"{file}:other").name == "of a neighbour"


def test_the_neighbours_of_a_file_win(write, tmp_path, monkeypatch):
    """Its folder may be on the path already, behind others, as with ``PYTHONPATH``."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "my_neighbour.py").write_text("NAME = 'of another folder'")
    monkeypatch.setattr(sys, "path", [str(other), str(tmp_path), *sys.path])
    monkeypatch.setenv("PYTHONPATH", f"{other}{os.pathsep}{tmp_path}")
    write("NAME = 'of a neighbour'", "my_neighbour.py")
    text = "import my_neighbour\ndef mine(): return build(my_neighbour.NAME)"
    file = write(TOPOLOGY, "of_two_folders.py", after=text)
    assert load_topology(f"{file}:mine").name == "of a neighbour"
    assert os.environ["PYTHONPATH"].split(os.pathsep) == [str(tmp_path), str(other)]


def test_processes_started_from_here_find_the_file_too(write, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere/else")
    load_topology(write(TOPOLOGY))
    assert os.environ["PYTHONPATH"].split(os.pathsep) == [str(tmp_path), "/somewhere/else"]


def test_loading_twice_is_loading_once(write, tmp_path):
    file = write(TOPOLOGY)
    first, second = load_topology(file), load_topology(file)
    assert first.name == second.name
    assert sys.path.count(str(tmp_path)) == 1


def test_no_such_file(tmp_path):
    assert refused(f"{tmp_path}/none.py") == f"{tmp_path}/none.py does not exist"


def test_a_folder(tmp_path):
    assert refused(str(tmp_path)) == f"{tmp_path} is a folder; name a file in it"


def test_a_syntax_error_is_reported_with_its_line(write):
    file = write("def build(:\n    pass\n")
    assert refused(file).startswith(f"{file}:1: SyntaxError: ")


def test_a_syntax_error_of_a_neighbour_names_the_neighbour(write):
    write("x = = 1", "wrong_neighbour.py")
    assert "wrong_neighbour.py:1: SyntaxError" in refused(write("import wrong_neighbour"))


def test_what_the_file_raises_is_reported_with_its_line(write):
    file = write("first = 1\nsecond = first / 0\n")
    assert refused(file) == (
        f"importing {file} raised ZeroDivisionError: division by zero\n"
        f"  at {file}:2, in <module>: second = first / 0"
    )


def test_a_file_that_exits_is_no_exit(write):
    assert "raised SystemExit: 3" in refused(write("import sys\nsys.exit(3)\n"))


def test_a_module_that_is_missing_is_named(write):
    assert "ModuleNotFoundError: No module named 'not_installed'" in refused(write("import not_installed"))


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        (
            "old_queue",
            "import Queue",
            "Queue is a module of Python 2, and stormspark runs Python 3, which calls it queue",
        ),
        (
            "old_beside",
            "from shared_here import NAME",
            "shared_here is beside this file, where only Python 2 looks",
        ),
        (
            "old_print",
            "print 'a'",
            "this is written for an older Python, and stormspark runs Python 3: `stormspark port",
        ),
        ("old_async", "f(async=True)", "this is written for an older Python"),
    ],
)
def test_what_only_python_2_does_is_told(write, tmp_path, name, text, hint):
    (tmp_path / name).mkdir()
    for module, code in {"__init__": "", "shared_here": "NAME = 1", "words": text}.items():
        (tmp_path / name / f"{module}.py").write_text(code)
    with pytest.raises(TopologyNotFoundError) as raised:
        load_topology(write(f"import {name}.words"))
    assert any(hint in note for note in raised.value.__notes__)


def test_what_the_function_raises_is_reported_with_the_users_line(write):
    file = write("""
        import json
        def build():
            return json.loads("{")
    """)
    message = refused(file)
    assert message.startswith(f"{file}:build raised JSONDecodeError: json.decoder.JSONDecodeError") or (
        "JSONDecodeError: Expecting property name" in message
    )
    assert message.endswith(f'at {file}:4, in build: return json.loads("{{")')


def test_our_own_errors_come_through(write):
    file = write(TOPOLOGY, after="def wrong(): TopologyBuilder().set_spout('', Numbers())")
    with pytest.raises(InvalidTopologyError, match="a component's id must be a string"):
        load_topology(f"{file}:wrong")


def test_a_missing_name_meets_those_that_are_there(write):
    file = write(TOPOLOGY, after="topology = build()\ndef _private(): ...\ndef needs(this): ...\n")
    assert refused(f"{file}:biuld") == f"{file} has no 'biuld'. Did you mean {file}:build or {file}:topology?"


def test_functions_that_say_they_give_something_else_are_not_suggested(write):
    file = write("def count() -> int: return 1\ndef topo() -> 'Topology': ...\n")
    assert refused(file) == f"{file} has no 'build'. Did you mean {file}:topo?"


def test_a_file_without_any_gets_a_message_that_names_what_to_write(write):
    assert refused(write("x = 1")).endswith(
        "has no 'build'. It needs a function build() that returns TopologyBuilder().create_topology(...)."
    )


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def build(): pass", "returns None (is a return missing?), not a Topology."),
        ("def build(): return 42", "returns 42 of type int, not a Topology."),
        ("build = 'text'", "is 'text' of type str, not a Topology."),
        ("class build: pass", "is the class build, not a Topology."),
    ],
)
def test_something_else_than_a_topology_is_reported_as_what_it_is(write, code, said):
    assert said in refused(write(code))


def test_a_builder_lacks_its_last_call(write):
    file = write("from stormspark import TopologyBuilder\ndef build(): return TopologyBuilder()")
    assert refused(file) == f'{file}:build returns a TopologyBuilder: end it with .create_topology("a name")'


def test_a_function_that_needs_arguments(write):
    file = write("def build(conf): ...")
    assert refused(file).startswith(
        f"{file}:build can't be called without arguments, missing a required argument: 'conf'"
    )


@pytest.mark.parametrize(
    ("name", "better"),
    [("word-count.py", "word_count.py"), ("1st.py", "_1st.py"), ("topology.txt", "topology.py")],
)
def test_a_name_that_python_cannot_import(write, name, better):
    assert refused(write(TOPOLOGY, name)).endswith(f"rename it, for example to {better}")


@pytest.mark.parametrize("name", ["json.py", "sys.py", "stormspark.py"])
def test_a_name_that_is_taken(write, name):
    file = write(TOPOLOGY, name)
    assert f"the name {name[:-3]!r} is taken by" in refused(file)


def test_a_file_that_is_not_found_while_a_topology_is_loaded(write):
    file = write('from pathlib import Path\nPath("data.txt").read_text()\n')
    with pytest.raises(TopologyNotFoundError) as caught:
        load_topology(file)
    message = str(caught.value)
    assert message.splitlines()[-1] == (
        f"  relative paths start in {os.getcwd()}; call it in the project's folder, or set stormspark.working.dir"
    )


def test_the_working_directory_of_the_command_line_holds_for_the_code_that_makes_the_topology(
    write, tmp_path
):
    file = write(TOPOLOGY, after='    from pathlib import Path\n    WORDS = Path("data.txt").read_text()\n')
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "data.txt").write_text("a")
    before = os.getcwd()
    topology = load_topology(file, FrontEndOptions(conf={"stormspark.working.dir": str(tmp_path / "data")}))
    assert topology.name == "numbers"
    assert os.getcwd() == before


FLUX = """
name: words
spouts:
  - {id: words, className: org.apache.storm.testing.TestWordSpout}
"""


def test_a_folder_with_one_flux_file_stands_for_it(tmp_path):
    (tmp_path / "flux").mkdir()
    (tmp_path / "flux" / "words.yaml").write_text(FLUX)
    (tmp_path / "settings.yaml").write_text("a: 1")
    assert load_topology(str(tmp_path)).name == "words"


def test_a_folder_with_several_topologies_names_them(tmp_path):
    for name in ("words.yaml", "others.yaml"):
        (tmp_path / name).write_text(FLUX)
    (tmp_path / "numbers.py").write_text(textwrap.dedent(TOPOLOGY))
    (tmp_path / "helpers.py").write_text("import json")
    named = ", ".join(str(tmp_path / name) for name in ("others.yaml", "words.yaml", "numbers.py"))
    assert refused(str(tmp_path)) == f"{tmp_path} is a folder; name a file in it: {named}"


def test_the_name_of_a_topology_in_a_project_is_not_for_a_file(tmp_path):
    file = tmp_path / "numbers.py"
    file.write_text(textwrap.dedent(TOPOLOGY))
    with pytest.raises(
        TopologyNotFoundError, match="is a file, and --name 'words' names a topology in the folder of"
    ):
        load_topology(str(file), FrontEndOptions(name="words"))
