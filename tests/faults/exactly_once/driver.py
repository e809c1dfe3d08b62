"""A driver to be killed. Arguments: folder, name, workers, master, more settings as JSON. It ends when ``done`` is there and all
is worked off.
"""

import json
import sys
from pathlib import Path

from stormspark.metrics import Quiet
from stormspark.spark import local_session, submit
from tests.faults.exactly_once.topology import build
from tests.spark_jars import connector_conf

folder, name, workers = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
conf = {
    "topology.workers": workers,
    "stormspark.log.dir": str(folder / "logs"),
    "stormspark.batch.target.ms": 300,
    "stormspark.max.attempts": 30,
    "stormspark.restart.max.delay.secs": 0.2,
    "stormspark.worker.lease.secs": 10,
} | json.loads(sys.argv[5] if len(sys.argv) > 5 else "{}")
of_spark = {"spark.executor.memory": "1024m"} | (connector_conf() if "stormspark.state.table" in conf else {})
spark = local_session(2, of_spark, master=sys.argv[4] if len(sys.argv) > 4 else None)
running = submit(build(name, folder), spark, conf=conf, checkpoint=folder / "checkpoint")
quiet = Quiet()
while not running.wait(0.2):
    now = running.statistics()
    if (folder / "done").exists() and quiet.reached(now):
        running.stop()
print(running.error)
sys.exit(running.error is not None)
