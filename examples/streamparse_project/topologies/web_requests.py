"""Statistics of a web server's requests. `docs/examples/streamparse.md` explains the project."""

from bolts import Parse, Statistics
from spouts import Requests
from streamparse import Grouping, Topology


class RequestStatistics(Topology):
    requests = Requests.spec()
    parse = Parse.spec(inputs=[requests], par=2)
    statistics = Statistics.spec(
        inputs={parse: Grouping.fields("path")}, par=2, config={"topology.tick.tuple.freq.secs": 5}
    )
