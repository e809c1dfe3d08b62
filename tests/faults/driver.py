"""A driver to be killed: runs a topology until the end of time. Arguments: folder, name."""

import sys
from pathlib import Path

from stormspark.spark import submit
from tests.spark.topologies import FOLDER, word_count

folder, name = Path(sys.argv[1]), sys.argv[2]
conf = {"topology.workers": 2, FOLDER: str(folder), "stormspark.log.dir": str(folder / "logs")}
running = submit(word_count(10, name), conf=conf, checkpoint=folder / "checkpoint")
while not running.wait(0.1):
    if running.statistics().batches:
        (folder / "runs").touch()
print(running.error)
