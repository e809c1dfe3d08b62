"""The spout: requests as a web server logs them."""

from streamparse import ReliableSpout

REQUESTS = [
    "GET /tea 200 31",
    "GET /coffee 200 48",
    "POST /orders 201 120",
    "GET /tea 200 29",
    "GET /unicorn 404 7",
    "POST /orders 500 2040",
    "GET /coffee 200 52",
    "GET /tea 200 33",
]


class Requests(ReliableSpout):
    outputs = ["line"]

    def initialize(self, stormconf, context):
        self.todo = iter(REQUESTS)
        self.number = 0

    def next_tuple(self):
        line = next(self.todo, None)
        if line is not None:
            self.number += 1
            self.emit([line], tup_id=self.number)  # ReliableSpout emits the line again if it fails
