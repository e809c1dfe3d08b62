"""The word count of the examples as a Spark application.

    (cd examples && zip ../examples.zip *.py)
    spark-submit --py-files examples.zip jobs/word_count.py [--checkpoint FOLDER] [key=value ...]

A cluster without stormspark gets it likewise, or by `--archives`; `key=value` are settings of the topology.
"""

import argparse
import importlib
import json
import sys
import time

from pyspark.sql import SparkSession

from stormspark.config import parse_assignment
from stormspark.spark import submit

parser = argparse.ArgumentParser()
parser.add_argument("--checkpoint", help="a folder or URL that all of the cluster can reach")
parser.add_argument("--until-idle", type=float, default=5, help="end after so many seconds without work")
parser.add_argument("settings", nargs="*", type=parse_assignment, metavar="key=value")
options = parser.parse_args()

del sys.path[0]  # the folder of this file, which has the same name as the module that it runs
topology = importlib.import_module("word_count").build()
spark = SparkSession.builder.appName("word-count").getOrCreate()
running = submit(topology, spark, checkpoint=options.checkpoint, conf=dict(options.settings))
done, since = -1, time.monotonic()
while not running.wait(0.2):
    now = running.statistics()
    if now.total("executed") != done or now.total("pending") or not now.batches:
        done, since = now.total("executed"), time.monotonic()
    elif time.monotonic() - since > options.until_idle:
        running.stop()
print(json.dumps(running.statistics().as_json()))
if running.error is not None:
    sys.exit(f"the topology stopped: {running.error}")
