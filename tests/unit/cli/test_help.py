"""What ``--help`` says is whole, and names the values of options."""

from __future__ import annotations

import click
from click.testing import CliRunner

from stormspark.cli import main


def test_the_list_of_commands_has_whole_sentences() -> None:
    told = CliRunner().invoke(main, ["--help"], terminal_width=80).output
    lines = told.partition("Commands:\n")[2].splitlines()
    assert len(lines) == len(main.commands)
    assert [line for line in lines if not line.endswith(".") or line.endswith("...")] == []


def test_no_option_has_a_value_without_a_name() -> None:
    letters = main.commands["dead-letters"]
    assert isinstance(letters, click.Group)
    commands = [*main.commands.values(), *letters.commands.values()]
    unnamed = [
        (command.name, option.opts)
        for command in commands
        for option in command.params
        if isinstance(option, click.Option) and option.metavar is None and "range" in option.type.name
    ]
    assert unnamed == []


def test_a_wait_has_one_spelling_for_all_commands() -> None:
    for name in ("kill", "rebalance"):
        told = CliRunner().invoke(main, [name, "--help"]).output
        assert "-w, --wait, --wait-time-secs SECS" in told
