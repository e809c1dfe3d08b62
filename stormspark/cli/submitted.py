"""The program that ``spark-submit`` starts for ``stormspark submit``: it runs ``stormspark run`` with its arguments.

In client mode, this program gets the signals that come to ``stormspark submit`` (`stormspark.cli.child`). In cluster mode, Spark
has unpacked the project in the driver's working directory. Paths in the topology begin in the project.
"""

import os
import sys

from stormspark.cli import main
from stormspark.cli.child import DRIVER_FILE
from stormspark.working_folder import SHIPPED_PROJECT

if __name__ == "__main__":
    if file := os.environ.pop(DRIVER_FILE, None):
        with open(f"{file}.new", "w", encoding="ascii") as written:
            written.write(str(os.getpid()))
        os.replace(f"{file}.new", file)
    if os.path.isdir(SHIPPED_PROJECT):
        os.chdir(SHIPPED_PROJECT)
    main(sys.argv[1:])
