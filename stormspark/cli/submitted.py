"""What the driver of ``stormspark submit`` runs: ``stormspark run`` with the arguments of the program.

In client mode, this program gets the signals that come to ``stormspark submit`` (`stormspark.cli.child`). In cluster mode, Spark
has unpacked the project in the driver's working directory. Paths in the topology begin in the project.
"""

import os
import sys

from stormspark.cli import main
from stormspark.cli.child import DRIVER_FILE
from stormspark.working_folder import SHIPPED_PROJECT

__all__ = ["PROGRAM", "run_submitted"]

#: The program that ``spark-submit`` starts. It is no copy of this file, because stormspark may be installed without sources.
PROGRAM = '''"""Runs a topology for `stormspark submit`, with the arguments of `stormspark run`."""

from stormspark.cli.submitted import run_submitted

run_submitted()
'''


def run_submitted() -> None:
    """Run the command with the arguments of this program. On the user's terminal, its last lines are the topology's own."""
    is_here = DRIVER_FILE in os.environ
    if file := os.environ.pop(DRIVER_FILE, None):
        with open(f"{file}.new", "w", encoding="ascii") as written:
            written.write(str(os.getpid()))
        os.replace(f"{file}.new", file)
    if os.path.isdir(SHIPPED_PROJECT):
        os.chdir(SHIPPED_PROJECT)
    try:
        main(sys.argv[1:])
    finally:
        if is_here and "stormspark.spark.jvm" in sys.modules:
            from stormspark.spark.jvm import end_warnings

            end_warnings()
