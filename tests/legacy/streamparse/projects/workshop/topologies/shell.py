from parts import Collect, Numbers
from streamparse import ShellBolt, Topology


class Shell(Topology):
    numbers = Numbers.spec()
    double = ShellBolt.spec(command="python3", script="-u double.py", inputs=[numbers], outputs=["n"])
    collect = Collect.spec(inputs=[double])
