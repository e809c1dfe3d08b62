from petrel import storm
from petrel.emitter import BasicBolt


class Unload(BasicBolt):
    def __init__(self):
        super().__init__(script=__file__)

    def declareOutputFields(self):
        return ["good", "count"]

    def process(self, tup):
        if tup.is_tick_tuple():
            return
        assert isinstance(tup.values, list)
        name, goods = tup.values[0].split()[0], tup.values[0].split()[1:]
        if not goods:
            storm.emit([name], stream="empty")
        for good in goods:
            print("unloading", good)
            assert storm.emit([good, (1, {"from": name})], need_task_ids=True)

    def getComponentConfiguration(self):
        return {"topology.tick.tuple.freq.secs": 1}


def run():
    Unload().run()


def testUnload():
    from petrel import mock
    from ships import Ships

    bolt = Unload()
    spout = mock.MockSpout(Ships.declareOutputFields(), [["anna rye salt"]])
    result = mock.run_simple_topology({}, [spout, bolt], result_type=mock.LIST)
    assert [good for good, _ in result[bolt]] == ["rye", "salt"]
