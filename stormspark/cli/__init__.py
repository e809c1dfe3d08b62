"""The command line: stormspark run, stormspark explain."""

from stormspark.cli.commands import main

__all__ = ["main"]
