"""A driver to be killed. Arguments: folder, name, workers. It ends when ``done`` is there and all is worked off."""

import sys
from pathlib import Path

from stormspark.spark import local_session, submit
from tests.end_when_done import end_when_done
from tests.spark.transactional_topology import build

folder, name, workers = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
conf = {
    "topology.workers": workers,
    "stormspark.log.dir": str(folder / "logs"),
    "stormspark.batch.target.ms": 300,
    "stormspark.max.attempts": 30,
    "stormspark.restart.max.delay.secs": 0.2,
    "stormspark.worker.lease.secs": 10,
}
running = submit(build(name, folder), local_session(2, {}), conf=conf, checkpoint=folder / "checkpoint")
end_when_done(running, folder)
