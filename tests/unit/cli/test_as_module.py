"""The command line without its script: ``python -m stormspark``."""

import runpy
import sys

import pytest

from stormspark import __version__


@pytest.mark.parametrize("module", ["stormspark", "stormspark.cli"])
def test_the_package_is_the_command_line(module, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["-m", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"stormspark {__version__}\n"
