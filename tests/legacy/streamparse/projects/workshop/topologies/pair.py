from parts import Collect, Numbers
from streamparse import Grouping, Topology


class First(Topology):
    numbers = Numbers.spec()
    first = Collect.spec(inputs=[numbers])


class Second(Topology):
    numbers = Numbers.spec()
    second = Collect.spec(inputs={numbers: Grouping.GLOBAL}, par=2)
