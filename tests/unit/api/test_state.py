"""Stateful components: which methods they must have, and which they may."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from stormspark import BasicBolt, Fields
from stormspark.api.state import KeyValueState, StatefulBolt, StatefulComponent, TwoPhaseStatefulComponent
from stormspark.checkpoint.key_value_store import KeyValueStore


class Count(StatefulBolt[KeyValueState[str, int]]):
    def init_state(self, state):
        self.counts = state

    def execute(self, tup):
        self.counts[tup] = self.counts.get(tup, 0) + 1


def test_a_stateful_bolt_gets_its_state():
    """C35: the hooks of the transaction may be left out."""
    state = KeyValueStore()
    bolt = pickle.loads(pickle.dumps(Count()))
    bolt.prepare({}, None, None)
    bolt.init_state(state)
    for word in "a", "b", "a":
        bolt.execute(word)
    bolt.pre_prepare(1)
    state.prepare_commit(1)
    bolt.pre_commit(1)
    state.commit(1)
    bolt.execute("b")
    bolt.pre_rollback()
    state.rollback()
    assert dict(state) == {"a": 2, "b": 1}


def test_a_stateful_bolt_without_init_state_is_none():
    """A stateful bolt class without `init_state` can't be instantiated (C35)."""

    class Forgot(StatefulBolt[Any]):
        def execute(self, tup):
            raise AssertionError

    with pytest.raises(TypeError, match="init_state"):
        Forgot()  # type: ignore[abstract]


def test_herons_components_save_what_they_keep_elsewhere():
    """C42: the state is empty at first, and a map."""

    class Total(StatefulComponent, BasicBolt):
        def init_state(self, state):
            self.state, self.total = state, state.get("total", 0)

        def execute(self, tup, collector):
            self.total += tup

        def pre_save(self, checkpoint_id):
            self.state["total"] = self.total

        def declare_output_fields(self, declarer):
            declarer.declare(Fields("total"))

    state: Any = {}
    bolt = Total()
    bolt.init_state(state)
    bolt.execute(3, None)  # type: ignore[arg-type]
    bolt.pre_save(1)
    restarted = Total()
    restarted.init_state(state)
    assert restarted.total == 3


@pytest.mark.parametrize(
    ("mixin", "methods"),
    [
        (StatefulComponent, {"init_state", "pre_save"}),
        (TwoPhaseStatefulComponent, {"init_state", "pre_save", "post_save", "pre_restore"}),
    ],
)
def test_herons_methods_are_all_to_be_written(mixin, methods):
    """Heron's stateful components have Heron's abstract methods (C42)."""
    assert mixin.__abstractmethods__ == methods
