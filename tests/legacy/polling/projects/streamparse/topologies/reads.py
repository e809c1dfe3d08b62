from bolts import KeepBolt, PassOnBolt
from spouts import ReadsSpout
from streamparse import Topology


class Asking(Topology):
    asks = ReadsSpout.spec(par=2)
    first = PassOnBolt.spec(inputs=[asks])
    second = PassOnBolt.spec(inputs=[first])
    keeps = KeepBolt.spec(inputs=[second])
