"""The class's style: two streams, a grouping of one's own, output fields that the topology adds."""

from heronpy.api.bolt.bolt import Bolt
from heronpy.api.custom_grouping import ICustomGrouping
from heronpy.api.stream import Grouping, Stream
from heronpy.api.topology import Topology
from parts.bolts import StreamsBolt
from parts.sources import WordSpout


class ByNumber(ICustomGrouping):
    def prepare(self, context, component, stream, target_tasks):
        self.tasks = target_tasks

    def choose_tasks(self, values):
        return [self.tasks[values[0] % 4 // 2]]


class Same(Bolt):
    def process(self, tup):
        self.emit(tup.values, stream="same")


class Streams(Topology):
    config = {"words": 100, "topology.stmgrs": 2}
    words = WordSpout.spec(par=2)
    same = Same.spec(inputs={words: Grouping.NONE}, optional_outputs=[Stream(["word"], name="same")])
    both = StreamsBolt.spec(
        inputs={same["same"]: Grouping.ALL, words["odd"]: Grouping.custom(ByNumber())}, par=2
    )
    one = StreamsBolt.spec(name="lowest", inputs={words: Grouping.LOWEST}, par=2)
