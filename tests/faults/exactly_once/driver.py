"""A driver to be killed. Arguments: the module that builds the topology, folder, name, workers, master, more settings as JSON. It
ends when ``done`` is there and all is worked off.
"""

import importlib
import json
import sys
from pathlib import Path

from stormspark.spark import local_session, submit
from tests.end_when_done import end_when_done
from tests.spark_jars import connector_conf

module, given, name, workers, master, more = sys.argv[1:]
folder = Path(given)
conf = {
    "topology.workers": int(workers),
    "stormspark.log.dir": str(folder / "logs"),
    "stormspark.batch.target.ms": 300,
    "stormspark.max.attempts": 30,
    "stormspark.restart.max.delay.secs": 0.2,
    "stormspark.worker.lease.secs": 10,
} | json.loads(more)
of_spark = {"spark.executor.memory": "1024m"} | (connector_conf() if "stormspark.state.table" in conf else {})
of_spark |= {name: value for name, value in conf.items() if name.startswith("spark.")}
spark = local_session(2, of_spark, master=master)
topology = importlib.import_module(module).build(name, folder)
running = submit(topology, spark, conf=conf, checkpoint=folder / "checkpoint")
end_when_done(running, folder)
