from parts import Sorter, Ticker, WithTask
from streamparse import Grouping, Topology
from streamparse.thrift import GlobalStreamId

even = GlobalStreamId(componentId="sorter", streamId="even")


class Streams(Topology):
    sorter = Sorter.spec()
    everywhere = WithTask.spec(name="everywhere", inputs={sorter["even"]: Grouping.ALL}, par=3)
    odd_bolt = WithTask.spec(inputs={sorter["odd"]: Grouping.DIRECT}, par=2)
    ticker = Ticker.spec(inputs=[even])
