"""Asks a web service for the price of each order: many requests at once, with timeouts, retries and a cache.

    python examples/price_service.py
    stormspark run examples/enrichment.py --engine local --trigger available-now

The first command is a small service to ask; let it run in another terminal. The variable PRICES may hold the address of another
service, and PRICE_SECS how long a request may take. `docs/examples/enrichment.md` explains it all.
"""

import asyncio
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from stormspark import AsyncBolt, BasicBolt, FailedException, Fields, TopologyBuilder
from stormspark.api import ExponentialBackoff
from stormspark.connectors import FileSpout

PRICES = os.environ.get("PRICES", "http://127.0.0.1:8765/price/")
REQUEST_SECS = float(os.environ.get("PRICE_SECS", "2"))  # for one request
PAUSES_SECS = (0.1, 0.5)  # before the second and the third request for an item
MOST_CACHED = 10_000


class AddPrice(AsyncBolt):
    """Emits each order with its price. A hundred orders may wait for the service at once, in each task."""

    capacity, timeout_secs = 100, 5 * REQUEST_SECS

    async def prepare(self, conf, context, collector):
        self.collector = collector
        self.prices = {}
        self.threads = ThreadPoolExecutor(self.capacity, thread_name_prefix="prices")

    async def execute(self, order):
        price = await self.price_of(order["item"])
        self.collector.emit((order["id"], order["item"], order["quantity"] * price))

    async def price_of(self, item):
        if item not in self.prices:
            price = await self.ask(item)
            if len(self.prices) >= MOST_CACHED:
                del self.prices[next(iter(self.prices))]  # the oldest one
            self.prices[item] = price
        return self.prices[item]

    async def ask(self, item):
        for pause in (*PAUSES_SECS, None):
            try:
                return await asyncio.get_running_loop().run_in_executor(self.threads, fetch, item)
            except urllib.error.HTTPError as error:
                error.close()
                reason = f"{error.code} {error.reason}"
                if error.code < 500:
                    break  # it would say the same again
            except OSError as error:  # no connection, or no answer in time
                reason = str(error)
            if pause is not None:
                await asyncio.sleep(pause)
        # Only the tuple fails. The spout emits the order again, and gives it up after its last retry.
        raise FailedException(f"no price for {item!r}: {reason}")

    async def cleanup(self):
        self.threads.shutdown(wait=False, cancel_futures=True)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id", "item", "cents"))


def fetch(item):
    """Ask the service. This blocks, so it runs in a thread of its own."""
    with urllib.request.urlopen(PRICES + urllib.parse.quote(item), timeout=REQUEST_SECS) as answer:
        return json.load(answer)["cents"]


class Report(BasicBolt):
    def execute(self, tup, collector):
        print(f"order {tup['id']}: {tup['item']} for {tup['cents'] / 100:,.2f}")


def build():
    orders = FileSpout(
        Path(__file__).parent / "data" / "orders",
        "json",
        schema="id long, item string, quantity long",
        fields=["id", "item", "quantity"],
        retry=ExponentialBackoff(initial_delay=0.1, period=0.2, max_delay=5, max_retries=2),
    )
    builder = TopologyBuilder()
    builder.set_spout("orders", orders)
    builder.set_bolt("price", AddPrice(), 2).shuffle_grouping("orders")
    builder.set_bolt("report", Report()).global_grouping("price")
    return builder.create_topology("enrichment")
