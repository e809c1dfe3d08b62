"""What the README shows runs as it stands there."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from stormspark.cli import main

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def my_topology(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    file = tmp_path / "my_topology.py"
    file.write_text(code)
    yield str(file)
    sys.modules.pop("my_topology", None)


@pytest.mark.slow
def test_the_word_count_prints_its_words(my_topology):
    done = CliRunner().invoke(main, ["run", my_topology, "--engine", "local", "--until-idle", "0.1"])
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    assert len(shown.splitlines()) == 3
    assert set(shown.splitlines()) <= set(done.stdout.splitlines())


@pytest.mark.slow
def test_the_word_count_runs(my_topology):
    done = CliRunner().invoke(
        main, ["run", my_topology, "--engine", "local", "--until-idle", "0.1", "--json", "-"]
    )
    assert done.exit_code == 0, done.stderr
    components = json.loads(done.stdout)["components"]
    assert components["sentences"]["acked"] == 2000
    assert components["count"]["executed"] == 10_000


def test_the_word_count_is_explained(my_topology):
    done = CliRunner().invoke(main, ["explain", my_topology])
    assert "3 components, 5 tasks, 2 workers" in done.stdout


def test_every_file_it_names_is_there():
    for name in re.findall(r"\]\(([^):]+)\)", README) + re.findall(r"`(\w+\.md)`", README):
        assert (Path(__file__).parents[2] / name.partition("#")[0]).exists(), name
