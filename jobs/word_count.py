"""The word count of the examples as a Spark application.

    (cd examples && zip ../examples.zip *.py)
    spark-submit --py-files examples.zip jobs/word_count.py [--checkpoint FOLDER] [key=value ...]

If stormspark is not installed on the cluster, ship it with `--py-files` too, or with `--archives`.
Each `key=value` is a setting of the topology.
The exit code is 1 if the topology stopped with an error, and 3 if rows were given up, all tuples of a component failed,
something may be unwritten, or nothing was done.
"""

import argparse
import importlib
import json
import sys

from pyspark.sql import SparkSession

from stormspark.config import parse_assignment
from stormspark.metrics import shortfalls
from stormspark.spark import submit
from stormspark.ui.watch import Idleness

parser = argparse.ArgumentParser()
parser.add_argument("--checkpoint", help="a folder or URL that the whole cluster can reach")
parser.add_argument("--until-idle", type=float, default=5, help="end after this many seconds without work")
parser.add_argument("settings", nargs="*", type=parse_assignment, metavar="key=value")
options = parser.parse_args()

del sys.path[0]  # remove this file's folder, because this file has the same name as the module that it runs
topology = importlib.import_module("word_count").build()
spark = SparkSession.builder.appName("word-count").getOrCreate()
running = submit(topology, spark, checkpoint=options.checkpoint, conf=dict(options.settings))
idleness = Idleness(options.until_idle)
while not running.wait(0.2):
    if idleness.reached(running.statistics()):
        running.stop()
print(json.dumps(running.statistics().as_json()))
if running.error is not None:
    sys.exit(f"the topology stopped: {running.error}")
if found := shortfalls(running.statistics()):
    print(*(one.text for one in found), sep="\n", file=sys.stderr)
    sys.exit(3)
