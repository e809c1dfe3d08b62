"""The orders for a round reach its tasks by a local property of Spark's."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from stormspark.acker.records import AckerTime
from stormspark.spark.forwarder import _read_orders, orders_property
from stormspark.worker.round_orders import PLAIN_ORDERS, EarlierAttempts, RoundOrders


@pytest.mark.parametrize(
    "orders",
    [
        PLAIN_ORDERS,
        RoundOrders(round=3, limits={4: 10, 7: 0}, target_secs=0.25, acker_time=AckerTime(90.0, 5, 2)),
        RoundOrders(committed=6, may_prepare=True, asks_spouts=False, ending_round=2),
    ],
)
def test_tasks_read_what_the_driver_ordered(orders: RoundOrders) -> None:
    _, value = orders_property(orders)
    assert _read_orders(value) == orders


def test_tasks_without_the_property_run_a_plain_round() -> None:
    assert _read_orders(None) == PLAIN_ORDERS


def test_what_earlier_attempts_have_left_is_not_in_the_property() -> None:
    """It is in the closure, which is sent once."""
    _, value = orders_property(RoundOrders(earlier=EarlierAttempts(7, {3: ("row",)}, {"spout/0": b"said"})))
    assert _read_orders(value) == PLAIN_ORDERS
