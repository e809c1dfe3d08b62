"""A driver to be killed: counts up to a number, then ends. Arguments: folder, numbers, tasks, workers."""

import sys
from pathlib import Path

from stormspark.metrics import Quiet
from stormspark.spark import local_session, submit
from tests.spark.test_state import BY_KEYS, topology

folder, numbers, tasks, workers = Path(sys.argv[1]), *map(int, sys.argv[2:])
conf = {
    "topology.workers": workers,
    "test.effects": str(folder),
    "stormspark.log.dir": str(folder / "logs"),
    "stormspark.batch.target.ms": 300,
}
running = submit(
    topology(numbers, tasks, **BY_KEYS), local_session(2, {}), conf=conf, checkpoint=folder / "checkpoint"
)
quiet = Quiet()
while not running.wait(0.1):
    if quiet.reached(running.statistics()):
        running.stop()
print(running.error)
sys.exit(running.error is not None)
