from bolts import KeepBolt, PassOnBolt
from spouts import ForEverSpout
from streamparse import Topology


class Asking(Topology):
    asks = ForEverSpout.spec(par=2)
    first = PassOnBolt.spec(inputs=[asks])
    second = PassOnBolt.spec(inputs=[first])
    keeps = KeepBolt.spec(inputs=[second])
