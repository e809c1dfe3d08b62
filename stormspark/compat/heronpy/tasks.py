"""The spout and the bolt that run heronpy's components. The engine calls them, and each calls a component of the user.

Only the class of the user's component is pickled. The task makes the instance, with a delegate (B21). It starts the instance in
Heron's order: first its state, then ``initialize``, then its hooks, then its ticks.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, MutableMapping
from typing import Any

from stormspark.api import (
    Bolt,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    Spout,
    SpoutOutputCollector,
    TopologyContext,
    Tuple,
)
from stormspark.api.state import StatefulComponent
from stormspark.compat.heronpy.constants import TOPOLOGY_TICK_TUPLE_FREQ_SECS
from stormspark.compat.heronpy.contexts import TaskContext
from stormspark.compat.heronpy.delegates import Blueprint, BoltDelegate, SpoutDelegate, UnhashableId
from stormspark.compat.heronpy.global_metrics import SharedCounts, root_name
from stormspark.compat.heronpy.hooks import Hooks
from stormspark.compat.heronpy.state import SavedState
from stormspark.compat.heronpy.window_bolt import HoldsWindow

__all__ = ["HeronBolt", "HeronSpout", "StatefulHeronBolt", "StatefulHeronSpout"]

#: The seconds between two readings of the counters in `global_metrics`: the key of this setting in Heron, and its default.
_EXPORT_KEY, _EXPORT_SECS = "heron.metrics.export.interval.sec", 60.0


class _Declares:
    """The base class of `HeronSpout` and `HeronBolt`. It declares the outputs of the user's component."""

    def __init__(self, blueprint: Blueprint, streams: Mapping[str, tuple[str, ...]]) -> None:
        self.blueprint = blueprint
        self._streams = streams
        self._user: Any = None

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """See `stormspark.api.Component`."""
        for stream, fields in self._streams.items():
            declarer.declare_stream(stream, Fields(fields), direct=stream in self.blueprint.direct)


def _began(
    user: Any, blueprint: Blueprint, conf: Mapping[str, Any], context: TopologyContext
) -> tuple[dict[str, Any], Hooks, TaskContext]:
    """Initialize the component ``user`` with its delegate, metrics, context and hooks, in Heron's order."""
    delegate = user.delegate
    config = blueprint.config_for(conf)
    delegate.configure(config)
    hooks = Hooks(config, delegate)
    known = TaskContext(context, config, blueprint.sources, hooks)
    delegate.now = known.now
    context.register_metric(root_name, SharedCounts(), float(config.get(_EXPORT_KEY, _EXPORT_SECS)))
    user.initialize(config, known)
    hooks.begin(context, config, known)
    return config, hooks, known


class HeronSpout(_Declares, Spout):
    """Runs a `stormspark.compat.heronpy.components.Spout`."""

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Make the user's spout and initialize it."""
        user = self.user
        self._delegate: SpoutDelegate = user.delegate
        self._delegate.collector = collector
        self._task = context.this_task_id
        #: Whether the engine has activated the spout. Heron calls ``activate`` only after a deactivation.
        self._was_active = False
        _, self._hooks, _ = _began(user, self.blueprint, conf, context)

    @property
    def user(self) -> Any:
        """The user's spout. The first use makes it, because ``init_state`` is called before ``open`` (B26)."""
        if self._user is None:
            self._user = self.blueprint.component(SpoutDelegate(self.blueprint))
        return self._user

    def next_tuple(self) -> None:
        """Call ``next_tuple`` of the user's spout. If nothing is tracked, ack its emits at once, the last emit first (B23)."""
        self._user.next_tuple()
        immediate = self._delegate.immediate
        if immediate:
            self._delegate.immediate = []
            for tup_id in reversed(immediate):
                self._user.ack(tup_id)
                if self._hooks.hooks:
                    self._hooks.acked_at_once(tup_id, self._task)

    def ack(self, message_id: Hashable) -> None:
        """See `stormspark.api.Spout`."""
        self._user.ack(message_id.tup_id if type(message_id) is UnhashableId else message_id)

    def fail(self, message_id: Hashable) -> None:
        """See `stormspark.api.Spout`."""
        self._user.fail(message_id.tup_id if type(message_id) is UnhashableId else message_id)

    def activate(self) -> None:
        """See `stormspark.api.Spout`."""
        if self._was_active:
            self._user.activate()
        self._was_active = True

    def deactivate(self) -> None:
        """See `stormspark.api.Spout`."""
        self._user.deactivate()

    def close(self) -> None:
        """See `stormspark.api.Spout`."""
        self._user.close()


class HeronBolt(_Declares, Bolt):
    """Runs a `stormspark.compat.heronpy.components.Bolt`."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Make the user's bolt, initialize it, and start its ticks."""
        user = self.user
        self._delegate: BoltDelegate = user.delegate
        self._delegate.collector = collector
        config, hooks, _ = _began(user, self.blueprint, conf, context)
        self._observed = bool(hooks.hooks)
        # If `initialize` has set another period for ticks, as windowed bolts do, this object makes the ticks. Otherwise the
        # engine makes them.
        frequency = config.get(TOPOLOGY_TICK_TUPLE_FREQ_SECS)
        self._own_ticks = frequency != conf.get(TOPOLOGY_TICK_TUPLE_FREQ_SECS)
        self._gets_ticks = frequency is not None and float(frequency) > 0
        if self._own_ticks and frequency is not None and self._gets_ticks:
            context.set_timer(float(frequency), self._tick)

    @property
    def user(self) -> Any:
        """The user's bolt. The first use makes it, because ``init_state`` is called before ``prepare`` (B26)."""
        if self._user is None:
            self._user = self.blueprint.component(BoltDelegate(self.blueprint))
        return self._user

    def execute(self, tup: Tuple) -> None:
        """Call ``process`` of the user's bolt. For a tick, call ``process_tick``, unless this object makes the ticks itself."""
        delegate = self._delegate
        if tup.is_tick:
            if not self._own_ticks:
                self._tick()
            return
        heron_tuple = delegate.heron_tuple(tup)
        if self._observed:
            delegate.processed = heron_tuple
        self._user.process(heron_tuple)
        if tup.roots is not None and not delegate.acking and tup.state != 1:
            # The tuple is from a spout of stormspark. Such tuples are tracked in every mode of Heron, so somebody must ack it.
            delegate.collector.ack(tup)

    def end_of_input(self) -> None:
        """Make a last tick. A windowed bolt then acks what it still has."""
        if self._gets_ticks:
            self._tick()
        if isinstance(self._user, HoldsWindow):
            self._user.ack_all()

    def _tick(self) -> None:
        self._user.process_tick(self._delegate.tick())


class _Stateful(StatefulComponent):
    """A mixin for a component that has a state. It is used if batches are transactions (C42)."""

    user: Any

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        """Pass the state to the user's component. This is the component's first call."""
        self._state = SavedState(state)
        self.user.init_state(self._state)

    def pre_save(self, checkpoint_id: int) -> None:
        """Call ``pre_save`` of the user's component at the end of a batch, and save its state."""
        self.user.pre_save(checkpoint_id)
        self._state.save()


class StatefulHeronSpout(_Stateful, HeronSpout):
    """Runs a spout that is a `stormspark.compat.heronpy.state.StatefulComponent`."""


class StatefulHeronBolt(_Stateful, HeronBolt):
    """Runs a bolt that is a `stormspark.compat.heronpy.state.StatefulComponent`."""
