from parts import Collect, Numbers, Picky
from streamparse import Topology


class Replays(Topology):
    numbers = Numbers.spec()
    picky = Picky.spec(inputs=[numbers])
    collect = Collect.spec(inputs=[picky])
