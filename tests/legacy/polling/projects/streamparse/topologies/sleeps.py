from bolts import KeepBolt, PassOnBolt
from spouts import SleepsSpout
from streamparse import Topology


class Asking(Topology):
    asks = SleepsSpout.spec(par=2)
    first = PassOnBolt.spec(inputs=[asks])
    second = PassOnBolt.spec(inputs=[first])
    keeps = KeepBolt.spec(inputs=[second])
