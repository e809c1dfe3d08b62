"""With Storm's own storm.py."""

import storm


class Split(storm.BasicBolt):
    def process(self, tup):
        for word in tup.values[0].split(" "):
            storm.emit([word])


Split().run()
