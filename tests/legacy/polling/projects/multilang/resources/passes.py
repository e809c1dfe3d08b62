import storm


class Passes(storm.BasicBolt):
    def process(self, tup):
        storm.emit(tup.values)


Passes().run()
