"""The command line: the program ``stormspark`` with its commands."""

from stormspark.cli.commands import main

__all__ = ["main"]
