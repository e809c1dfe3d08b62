import json
import os

from streamparse.bolt import BasicBolt


class Keeper(BasicBolt):
    def initialize(self, conf, ctx):
        self.path = os.path.join(conf["test.folder"], conf["keeper.file"])

    def process(self, tup):
        with open(self.path, "a") as file:
            file.write(json.dumps(list(tup.values)) + "\n")
