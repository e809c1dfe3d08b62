from parts import Collect, Numbers, Pairs, Timed
from streamparse import Topology


class Batches(Topology):
    numbers = Numbers.spec()
    pairs = Pairs.spec(inputs=[numbers])
    collect = Collect.spec(inputs=[pairs])
    timed = Timed.spec(inputs=[numbers])
