"""The command line without its script: ``python -m stormspark``."""

import runpy
import sys

import pytest
from click.testing import CliRunner

from stormspark import __version__
from stormspark.cli import main


@pytest.mark.parametrize("module", ["stormspark", "stormspark.cli"])
def test_the_package_is_the_command_line(module, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["-m", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"stormspark {__version__}\n"


@pytest.mark.parametrize("command", ["status", "top"])
def test_who_looks_for_figures_hears_where_they_are(command):
    """Click would suggest `state`, which shows something else."""
    done = CliRunner().invoke(main, [command])
    assert done.exit_code == 2 and "--json OUT" in done.output and "Did you mean" not in done.output
