from parts import Collect
from streamparse import JavaSpout, Topology


class Java(Topology):
    words = JavaSpout.spec(full_class_name="com.acme.WordSpout", args_list=["x"], outputs=["word"])
    collect = Collect.spec(inputs=[words])
