"""The program that ``spark-submit`` starts for ``stormspark submit``: it runs ``stormspark run`` with its arguments.

In cluster mode, Spark has unpacked the project in the driver's working directory. Paths in the topology begin in the project.
"""

import os
import sys

from stormspark.cli import main
from stormspark.working_folder import SHIPPED_PROJECT

if __name__ == "__main__":
    if os.path.isdir(SHIPPED_PROJECT):
        os.chdir(SHIPPED_PROJECT)
    main(sys.argv[1:])
