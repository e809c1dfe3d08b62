"""A16: a module submits a topology while it is imported by another module, as with ``python -c "import words"``.

Until the import has ended, other threads can't import the module. But they have to unpickle objects of its classes, also for a
restart.
"""

import importlib
import sys
import threading

import stormspark.local  # noqa: F401 - so that the test does not wait for it

MODULE = """
import time

from stormspark import BasicBolt, CustomStreamGrouping, Fields, Spout, TopologyBuilder
from stormspark.local import submit

class Numbers(Spout):
    waits = True

    def open(self, conf, context, collector):
        self.collector, self.left = collector, 4

    def next_tuple(self):
        if self.left:
            self.left -= 1
            self.collector.emit((self.left,), message_id=self.left)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))

class Chooses(CustomStreamGrouping):
    def prepare(self, context, stream, tasks):
        self.tasks = tasks

    def choose_tasks(self, task, values):
        return self.tasks

class Counts(BasicBolt):
    waits = True

    def execute(self, tup, collector):
        if not INSTANCES:
            INSTANCES.append(self)
            raise ValueError("the first tuple makes the task start again")

INSTANCES = []
builder = TopologyBuilder()
builder.set_spout("numbers", Numbers())
builder.set_bolt("counts", Counts()).custom_grouping("numbers", Chooses())
running = submit(builder.create_topology("imported"))
try:
    while running.statistics().components["counts"].executed < 3:
        time.sleep(0.001)
    counted = running.statistics().components["counts"].acked
finally:
    running.stop()
"""


def test_a_topology_that_a_module_submits_while_it_is_imported_runs(tmp_path, monkeypatch):
    (tmp_path / "submits_at_import.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    # If it failed, an import in the test's own thread would never return.
    importing = threading.Thread(target=importlib.import_module, args=["submits_at_import"], daemon=True)
    importing.start()
    importing.join(20)
    assert not importing.is_alive()
    assert sys.modules.pop("submits_at_import").counted == 3
