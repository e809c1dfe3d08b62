import textwrap

import pytest

from stormspark import flux
from stormspark.errors import InvalidTopologyError
from stormspark.flux import class_names
from tests.imports import imports_undone


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch, tmp_path):
    """Loading a file puts its folder on the module path, and may register classes: undo that."""
    monkeypatch.setattr(class_names, "_registered", {})
    with imports_undone(monkeypatch, tmp_path):
        yield


@pytest.fixture
def write(tmp_path):
    """Write a file into the test's folder."""

    def write_file(text, name="topology.yaml"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text).lstrip("\n"))
        return file

    return write_file


@pytest.fixture
def load(write):
    """The topology of a text."""

    def load_text(text, **options):
        return flux.load(write(text), **options)

    return load_text


@pytest.fixture
def refused(load):
    """The message that a text is refused with; it names the file, and the line if one is given."""

    def refused_text(text, line=None, **options):
        with pytest.raises(InvalidTopologyError) as caught:
            load(text, **options)
        message = str(caught.value)
        assert "topology.yaml" + (f":{line}:" if line else "") in message
        return message

    return refused_text


@pytest.fixture
def made(load):
    """The object that a topology makes of the definition of a component; ``before`` are those that it may refer to."""

    def component(text, before=""):
        from tests.unit.flux.parts import Keeper

        own = textwrap.indent(textwrap.dedent(text).strip("\n"), "  ")
        load(
            f"name: t\ncomponents:\n{textwrap.dedent(before)}- id: made\n{own}\n"
            "spouts:\n- {id: words, className: org.apache.storm.testing.TestWordSpout}\n"
            "bolts:\n- {id: keep, className: tests.unit.flux.parts.Keeper, constructorArgs: [ref: made]}\n"
            "streams:\n- {from: words, to: keep, grouping: {type: SHUFFLE}}\n"
        )
        return Keeper.kept

    return component
