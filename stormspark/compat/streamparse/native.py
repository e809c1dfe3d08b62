"""Puts components of stormspark into a streamparse topology. Use it to replace Java components, or to port step by step.

from stormspark.compat.streamparse.native import native

class WordCount(Topology):
    words = native(KafkaSpout(...))
    count = CountBolt.spec(inputs={words: Grouping.fields("word")})
    top = native(TopWords().with_window(...), inputs=[count], par=2)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stormspark.api import (
    AsyncBolt,
    AsyncSpout,
    BasicBolt,
    Bolt,
    OutputFieldsDeclarer,
    SourceSpout,
    Spout,
    WindowedBolt,
)
from stormspark.compat.streamparse.specs import ComponentSpec, NativeBoltSpec, NativeSpoutSpec
from stormspark.compat.streamparse.streams import Stream

__all__ = ["native"]


def native(
    component: Spout | SourceSpout | AsyncSpout | Bolt | BasicBolt | WindowedBolt | AsyncBolt,
    name: str | None = None,
    inputs: Any = None,
    par: int | dict[str, int] = 1,
    config: Mapping[str, Any] | None = None,
) -> ComponentSpec:
    """Return a spec for any spout or bolt of `stormspark.api`.

    The spec's outputs are the streams that the component declares.

    >>> from stormspark.testing import TestWordSpout
    >>> native(TestWordSpout(), name="words")["default"]
    GlobalStreamId(componentId='words', streamId='default')
    """
    declarer = OutputFieldsDeclarer(name or type(component).__qualname__)
    component.declare_output_fields(declarer)
    outputs = [Stream(list(one.fields), one.id, one.direct) for one in declarer.streams.values()]
    kind = NativeSpoutSpec if isinstance(component, Spout | SourceSpout | AsyncSpout) else NativeBoltSpec
    return kind(component, name=name, inputs=inputs, par=par, config=config, outputs=outputs)
