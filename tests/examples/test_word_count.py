"""The demo, on a small text: what it says of the counts is true, also when they are wrong."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
TEXT = {
    "a.py": "def a():\n    return self\n\n",
    "folder/b.py": "self.b = 1\n# über self\n",
    "c.txt": "self self",
}


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    yield
    for name in ("word_count", "check_word_count", "standard_library"):
        sys.modules.pop(name, None)


@pytest.fixture
def text(tmp_path):
    for name, content in TEXT.items():
        file = tmp_path / "text" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content * 50, encoding="utf-8")
    return tmp_path / "text"


def check(*arguments):
    return importlib.import_module("check_word_count").main(*arguments)


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("local", marks=pytest.mark.slow),
        pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow]),
    ],
)
def test_the_counts_are_exact(engine, text, tmp_path, capsys):
    options = ["--engine", engine, "--workers", "2", "--until-idle", "0.5", "--json", "-"]
    settings = ["-c", f"wordcount.output={tmp_path / 'counts'}", "-c", f"wordcount.folder={text}"]
    # In a process of its own, as users run it: its Spark learns the module path when it starts.
    command = [
        sys.executable,
        "-m",
        "stormspark.cli",
        "run",
        str(EXAMPLES / "word_count.py"),
        *options,
        *settings,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    components = json.loads(done.stdout)["components"]
    assert components["lines"]["acked"] == 4 * 50
    assert components["count"]["executed"] == 8 * 50
    assert check(tmp_path / "counts", text) == 0
    out = capsys.readouterr().out
    assert "150 self" in out
    assert "OK: 400 words, 6 different ones" in out


def counted(tmp_path, *tasks):
    for number, counts in enumerate(tasks):
        (tmp_path / f"task-{number}.json").write_text(json.dumps(counts))
    return tmp_path


def test_a_wrong_count_is_reported(text, tmp_path, capsys):
    assert check(counted(tmp_path, {"self": 151, "def": 50}, {"a": 50, "return": 50, "b": 50}), text) == 1
    out = capsys.readouterr().out
    assert "2 words differ" in out
    assert "'self': the topology counted 151, Python 150" in out


def test_a_word_in_two_tasks_is_reported(text, tmp_path):
    with pytest.raises(SystemExit, match="'self' was counted by two tasks"):
        check(counted(tmp_path, {"self": 75}, {"self": 75}), text)


def test_missing_counts_are_reported(text, tmp_path, capsys):
    assert check(tmp_path, text) == 1
    assert "was the topology stopped gracefully?" in capsys.readouterr().out


def test_every_line_is_one_readers(text):
    lines = importlib.import_module("standard_library").lines
    everything = list(lines(folder=text))
    shares = [list(lines(share, 3, text)) for share in range(3)]
    assert sorted(line for share in shares for line in share) == everything
    assert [number for number, _ in everything] == list(range(len(everything)))
    assert all(line.strip() for _, line in everything)
