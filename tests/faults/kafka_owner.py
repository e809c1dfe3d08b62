"""A test run to be killed: starts a broker, says so, sleeps. Arguments: folder."""

import signal
import sys
from pathlib import Path

from tests.kafka_broker import KafkaBroker

folder = Path(sys.argv[1])
broker = KafkaBroker(folder / "kafka")
broker.start()
(folder / "pid").write_text(str(broker.pid))
print("started", flush=True)
signal.pause()
