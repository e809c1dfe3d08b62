"""Files as users of heronpy's streamlets write them: they are run by the command line, and are nothing else's modules."""

WORD_COUNT = '''
"""Counts words in windows of a second: a generator of its own, arguments, classes and lambdas."""

import json
import sys

from heronpy.streamlet.builder import Builder
from heronpy.streamlet.config import Config
from heronpy.streamlet.generator import Generator
from heronpy.streamlet.resources import Resources
from heronpy.streamlet.runner import Runner
from heronpy.streamlet.windowconfig import WindowConfig


class Sentences(Generator):
    def __init__(self, sentences):
        super().__init__()
        self.sentences = sentences

    def setup(self, context):
        mine = self.sentences[context.get_partition_index()::context.get_num_partitions()]
        self.left = list(mine)

    def get(self):
        return self.left.pop() if self.left else None


def write(path, counted):
    window, count = counted
    with open(path, "a") as file:
        file.write(json.dumps([window._key, window._window._start_time, window._window._end_time, count]) + "\\n")
    return counted


if __name__ == "__main__":
    name, path = sys.argv[1], sys.argv[2]
    builder = Builder()
    sentences = builder.new_source(Sentences(["storm and spark", "storm and heron"] * 50)).set_num_partitions(2)
    counts = sentences.flat_map(lambda line: line.split()) \\
                      .map(lambda word: (word, 1)) \\
                      .reduce_by_key_and_window(WindowConfig.create_sliding_window(1, 1), lambda x, y: x + y) \\
                      .set_num_partitions(2)
    counts.map(lambda counted: write(path, counted)).set_name("write").log()
    config = Config()
    config.set_delivery_semantics(Config.ATLEAST_ONCE)
    config.set_num_containers(2)
    config.set_container_resources(Resources().set_cpu(1).set_ram_in_mb(256))
    config.set_user_config("mine", "yes")
    Runner().run(name, config, builder)
'''

JOIN = '''
"""Joins two sources that go on for ever; functions alone, and ends by being stopped."""

import sys

from heronpy.connectors.mock.arraylooper import ArrayLooper
from heronpy.streamlet.builder import Builder
from heronpy.streamlet.config import Config
from heronpy.streamlet.runner import Runner
from heronpy.streamlet.windowconfig import WindowConfig


def main():
    path = sys.argv[2]
    builder = Builder()
    prices = builder.new_source(ArrayLooper([["apple", 3], ["pear", 4]], sleep=0.1))
    orders = builder.new_source(ArrayLooper([("apple", 2), ("plum", 7)], sleep=0.1))

    def write(joined):
        with open(path, "a") as file:
            print(joined[0]._key, joined[1], file=file)
        return joined

    window = WindowConfig.create_sliding_window(2, 1)
    prices.outer_left_join(orders, window, lambda price, amount: price * (amount or 0)).map(write)
    prices.union(orders).reduce_by_window(window, lambda total, pair: (total or 0) + pair[1]).log()
    Runner().run(sys.argv[1], Config(), builder)


if __name__ == "__main__":
    main()
'''

RAISES = """
from heronpy.streamlet.builder import Builder
from heronpy.streamlet.config import Config
from heronpy.streamlet.runner import Runner

if __name__ == "__main__":
    builder = Builder()
    builder.new_source(lambda: 3).map(lambda number: number / 0)
    Runner().run("raises", Config(), builder)
"""
