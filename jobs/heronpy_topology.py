r"""A topology for heronpy as a Spark application.

    (cd examples && zip ../modules.zip *.py)
    spark-submit --py-files modules.zip jobs/heronpy_topology.py examples/heronpy_topology.py:temperatures \
        [--checkpoint FOLDER] [--arg TEXT ...] [-c key=value ...]

A name after the colon is the class of the topology, or its name. Without one, the file is run as Heron runs it: with the name of
the topology as its first argument, and each `--arg` after it. The executors need no heronpy, only stormspark.
The arguments, and the exit code, are those of `stormspark run`.
"""

import sys

from stormspark.cli import main

main(["run", *sys.argv[1:]])
