"""The tutorials, typed word by word into a shell, in the order of the page, by somebody who has nothing but the repository."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.test_examples import ROOT, blocks, commands

pytestmark = pytest.mark.slow

TUTORIALS = {
    page.stem: page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "tutorials").glob("*.md")
}
LONG_WORDS = TUTORIALS["first-topology"]
PORT = TUTORIALS["port-one"]
TOTALS = TUTORIALS["exactly-once"]
OPERATE = TUTORIALS["operate"]


def typed_on(page):
    """The commands of a page, without the results of examples, and without those that come before any other."""
    first = ("cd", "echo", "export", "mkdir", "pytest", "python", "stormspark", "timeout")
    return [line for line in commands(page) if line.split()[0] in first]


class Terminal:
    """A shell in an empty folder, which sees the repository's examples."""

    def __init__(self, folder):
        self._folder = folder
        # Spark starts `python3`.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self._environment = os.environ | {"PYTHONPATH": str(ROOT), "PATH": path, "PWD": str(folder)}

    def type(self, line, *, exit_codes=(0,)):
        """Type a command, and return what is printed."""
        command, *arguments = shlex.split(line)
        if command == "cd":
            self._folder /= arguments[0]
            return ""
        if command == "export":
            name, value = arguments[0].split("=")
            self._environment[name] = value.replace("$PWD", str(self._folder))
            return ""
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=1200,
        )
        assert done.returncode in exit_codes, f"{line}: {done.returncode}\n{done.stdout}"
        return done.stdout

    def file(self, name):
        return self._folder / name


@pytest.fixture
def terminal(tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return Terminal(tmp_path)


def change(file, old, new):
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def test_the_first_topology(terminal):
    quickstart, into, run, explain, run_again, explain_again, test, _ = typed_on(LONG_WORDS)
    as_it_is, long, with_long, its_test = blocks(LONG_WORDS, "python")
    terminal.type(quickstart)
    terminal.type(into)
    (shown,) = blocks(LONG_WORDS, "text")
    assert set(shown.splitlines()) <= set(terminal.type(run).splitlines())
    assert "split" in terminal.type(explain)

    file = terminal.file("word_count.py")
    assert as_it_is in file.read_text()
    change(file, "\ndef build():", f"\n{long}\n\ndef build():")
    change(file, "".join(as_it_is.splitlines(keepends=True)[-2:]), with_long)
    assert run_again == run
    printed = terminal.type(run_again)
    assert "  4 the\n" in printed
    assert not re.search(r"^ +\d+ an?$", printed, re.MULTILINE)

    change(file, '"long", Fields("word")', '"long", Fields("wrd")')
    said = terminal.type(explain_again, exit_codes=(2,))
    line = 1 + file.read_text().splitlines().index(
        '    builder.set_bolt("count", Count(), 2).fields_grouping("long", Fields("wrd"))'
    )
    assert f"word_count.py:{line}" in said
    assert "wrd" in said
    change(file, '"long", Fields("wrd")', '"long", Fields("word")')

    with terminal.file("tests/test_word_count.py").open("a") as tests:
        tests.write(f"\n\n{its_test}")
    assert "4 passed" in terminal.type(test)


@pytest.mark.spark
@pytest.mark.long
def test_the_first_topology_on_spark(terminal):
    quickstart, into, *_, on_spark = typed_on(LONG_WORDS)
    terminal.type(quickstart)
    terminal.type(into)
    printed = terminal.type(on_spark)
    logs = re.findall(r"^logs: (\S+)", printed, re.MULTILINE)
    assert logs, printed
    assert "  4 the\n" in "".join(path.read_text() for path in Path(logs[-1]).glob("count-*.log"))


def test_the_port(terminal):
    port, report, run, _ = typed_on(PORT)
    printed = terminal.type(port)
    columns = dict(re.findall(r"(?m)^\| (\w+) \| ([\d/]+) \|", PORT))
    assert list(columns.values()) == ["3/3", "2/2", "3", "0", "0"]
    heads, row = (  # the lines of a table
        re.split(r"\s*[┃│]\s*", line) for line in printed.splitlines() if re.search("components|3/3", line)
    )
    assert {head: row[heads.index(head)] for head in columns} == columns
    terminal.type(report)
    assert any(terminal.file("ported").iterdir())
    (shown,) = blocks(PORT, "text")
    printed = terminal.type(run)
    for line in shown.splitlines():
        assert re.sub(r"\d+ ms", "", line) in printed


@pytest.mark.spark
@pytest.mark.long
def test_the_port_on_spark(terminal):
    *_, on_spark = typed_on(PORT)
    assert "--engine" not in on_spark
    printed = terminal.type(on_spark)
    assert re.search(r"failed 0\b", printed), printed


@pytest.mark.spark
@pytest.mark.long
def test_exactly_once(terminal):
    (orders, *_) = blocks(TOTALS, "python")
    terminal.file("orders.py").write_text(orders)
    write, folder, run, look, write_more, kill, look_after, run_again, look_at_last = typed_on(TOTALS)
    spent = [line for line in blocks(TOTALS, "text")[0].splitlines() if line.startswith("|")]
    for line in (write, folder, run):
        terminal.type(line)
    assert [line for line in terminal.type(look).splitlines() if line.startswith("|")] == spent
    terminal.type(write_more)
    # 0 if the machine is so quick that it has ended; -9 if the shell has become `timeout`, as it may for its last command.
    terminal.type(kill, exit_codes=(0, 137, -9))
    assert len(amounts(terminal.type(look_after))) == 1
    terminal.type(run_again)
    assert amounts(terminal.type(look_at_last)) == {"1000.0"}


def amounts(table):
    """The different totals in a table."""
    return set(re.findall(r"\|\s*\w+\|\s*([\d.]+)\|", table))


@pytest.mark.spark
@pytest.mark.long
def test_operate(terminal):
    (code,) = blocks(OPERATE, "python")
    bills = terminal.file("bills.py")
    bills.write_text(code)
    folder, tea, explain, run, unicorn, run_again, stories, letters, again, mended, now, then, replay = (
        typed_on(OPERATE)
    )
    terminal.type(folder)
    terminal.type(tea)
    assert "bolt  bills: 2 tasks" in terminal.type(explain)
    terminal.type(run)
    terminal.type(unicorn)
    printed = terminal.type(run_again, exit_codes=(3,))
    failed, errors = blocks(OPERATE, "text")[0].splitlines()
    assert re.sub(r"\b[0-9a-f]{16}\b", "", failed) in re.sub(r"\b[0-9a-f]{16}\b", "", printed)
    assert errors.replace("/home/you/bills", str(bills.parent)) in printed
    assert "taken back with its batch" in terminal.type(stories)
    assert '["bob", "unicorn"]' in terminal.type(letters)

    (prices,) = re.findall(r"`(PRICES = .*?)`", OPERATE)
    change(bills, re.findall(r"(?m)^PRICES = .*$", code)[0], prices)
    terminal.type(again)
    terminal.type(mended)
    assert re.search(r"'bob' +9", terminal.type(now))
    assert terminal.type(then).split() == blocks(OPERATE, "text")[2].split()
    assert blocks(OPERATE, "text")[3] in terminal.type(replay)
