from needs import Client
from parts import Numbers
from streamparse import Topology


class Missing(Topology):
    numbers = Numbers.spec()
    client = Client
