from streamparse.bolt import Bolt


class SplitBolt(Bolt):
    outputs = ["word"]

    def process(self, tup):
        print("splitting", tup.values.line)
        for word in tup.values.line.split(" "):
            self.emit([word.upper() if self.storm_conf.get("shout") else word])


if __name__ == "__main__":
    SplitBolt().run()
