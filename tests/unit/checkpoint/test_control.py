"""Whose checkpoint folder it is, and how many lives the topology has had."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from stormspark.checkpoint.control import LocalControlFile, next_generation
from stormspark.errors import CheckpointError


def plan(topology="wc", *components):
    return SimpleNamespace(topology=topology, components=dict.fromkeys(components or ("spout", "bolt")))


def test_generations_count_up(tmp_path):
    file = LocalControlFile(tmp_path / "new")
    assert [next_generation(file, plan()).generation for _ in range(3)] == [0, 1, 2]
    assert json.loads((tmp_path / "new" / "stormspark" / "control.json").read_text()) == {
        "topology": "wc",
        "generation": 2,
        "components": ["bolt", "spout"],
        "format": 1,
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
