"""A small web service for the example in enrichment.py: GET /price/tea answers {"cents": 300}.

    python examples/price_service.py [PORT]

It is a bad service: every third request gets the answer 503, and only another try helps.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from urllib.parse import unquote

CENTS = {"tea": 300, "coffee": 450, "cocoa": 380}


class Prices(BaseHTTPRequestHandler):
    """Answers with the price of the item that the path names."""

    requests = count(1)  # of all connections

    def do_GET(self):  # the name that http.server calls
        item = unquote(self.path.rpartition("/")[2])
        if next(self.requests) % 3 == 0:
            self.answer(503, {"error": "busy"})
        elif item in CENTS:
            self.answer(200, {"cents": CENTS[item]})
        else:
            self.answer(404, {"error": f"no {item} here"})

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        """Log nothing."""


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8765
    with ThreadingHTTPServer(("127.0.0.1", port), Prices) as server:
        print(f"prices at http://127.0.0.1:{server.server_port}/price/", flush=True)
        server.serve_forever()
