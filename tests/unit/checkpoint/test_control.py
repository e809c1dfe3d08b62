"""Whose checkpoint folder it is, and how many lives the topology has had."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from stormspark.checkpoint.control import LocalControlFile, next_generation
from stormspark.errors import CheckpointError


def plan(topology="wc", *components, **sources):
    return SimpleNamespace(
        topology=topology,
        components=dict.fromkeys(components or ("spout", "bolt")),
        sources=[
            SimpleNamespace(id=id, kind_of_source=kind, declared_at="app.py:7")
            for id, kind in sources.items()
        ],
    )


def test_generations_count_up(tmp_path):
    file = LocalControlFile(tmp_path / "new")
    assert [next_generation(file, plan()).generation for _ in range(3)] == [0, 1, 2]
    assert json.loads((tmp_path / "new" / "stormspark" / "control.json").read_text()) == {
        "topology": "wc",
        "generation": 2,
        "components": ["bolt", "spout"],
        "sources": [],
        "format": 1,
        "driver": None,
        "application": "",
    }


def test_an_upgraded_topology_keeps_its_checkpoint(tmp_path):
    file = LocalControlFile(tmp_path)
    next_generation(file, plan())
    assert next_generation(file, plan("wc", "spout", "other")).components == ("other", "spout")


def test_another_topology_is_refused_and_nothing_is_written(tmp_path):
    file = LocalControlFile(tmp_path)
    next_generation(file, plan())
    with pytest.raises(CheckpointError, match="belongs to the topology 'wc', not to 'other'"):
        next_generation(file, plan("other"))
    with pytest.raises(CheckpointError, match="another topology called 'wc'"):
        next_generation(file, plan("wc", "elsewhere"))
    assert next_generation(file, plan()).generation == 1


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"topology": "wc", "generation": null}'])
def test_a_damaged_file_is_named(tmp_path, text):
    (tmp_path / "stormspark").mkdir()
    (tmp_path / "stormspark" / "control.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"control\.json .* is damaged"):
        next_generation(LocalControlFile(tmp_path), plan())


def test_a_newer_format_is_refused(tmp_path):
    file = LocalControlFile(tmp_path)
    next_generation(file, plan())
    path = tmp_path / "stormspark" / "control.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 99'))
    with pytest.raises(CheckpointError, match="newer stormspark"):
        next_generation(file, plan())


def test_a_folder_that_can_not_be_written_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="can't be used"):
        next_generation(LocalControlFile(tmp_path / "file"), plan())


def test_sources_can_not_come_go_or_change(tmp_path):
    """Spark keeps offsets by position: another spout would go on at the offsets of this one."""
    file = LocalControlFile(tmp_path)
    next_generation(file, plan(orders="KafkaSpout", prices="DeltaSpout"))
    next_generation(file, plan("wc", "spout", "another", orders="KafkaSpout", prices="DeltaSpout"))
    with pytest.raises(CheckpointError) as raised:
        next_generation(file, plan(orders="FileSpout", stock="KafkaSpout"))
    message = str(raised.value)
    assert "spout 'prices' (DeltaSpout) is gone" in message
    assert "spout 'orders' was KafkaSpout and is FileSpout (app.py:7)" in message
    assert "spout 'stock' (KafkaSpout) is new (app.py:7)" in message
    assert "begin with a new checkpoint folder" in message
    assert next_generation(file, plan(orders="KafkaSpout", prices="DeltaSpout")).generation == 2


def test_a_file_that_does_not_tell_its_sources_is_no_problem(tmp_path):
    file = LocalControlFile(tmp_path)
    next_generation(file, plan())
    path = tmp_path / "stormspark" / "control.json"
    fields = json.loads(path.read_text())
    del fields["sources"]
    path.write_text(json.dumps(fields))
    assert next_generation(file, plan(orders="KafkaSpout")).generation == 1
