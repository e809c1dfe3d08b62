"""Heron's configurations (A43, A44). Numbers and booleans are submitted as strings, and converted back when they are read.

So a component reads 12 for ``"12"``, and True for ``"true"``. Values of other types do not change, because Heron pickles
them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from stormspark.compat.heronpy.constants import (
    DEFAULTS,
    TOPOLOGY_AUTO_TASK_HOOKS,
    TOPOLOGY_COMPONENT_PARALLELISM,
    TOPOLOGY_ENABLE_ACKING,
    TOPOLOGY_RELIABILITY_MODE,
    TOPOLOGY_SERIALIZER_CLASSNAME,
    TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS,
    TopologyReliabilityMode,
)
from stormspark.errors import InvalidTopologyError

__all__ = ["checked", "engine_conf", "reliability_mode", "typed", "with_defaults"]

#: The keys that only the front-end reads.
_NOT_FOR_THE_ENGINE = frozenset(
    {TOPOLOGY_AUTO_TASK_HOOKS, TOPOLOGY_SERIALIZER_CLASSNAME, TOPOLOGY_COMPONENT_PARALLELISM}
)
_MODES = (
    TopologyReliabilityMode.ATMOST_ONCE,
    TopologyReliabilityMode.ATLEAST_ONCE,
    TopologyReliabilityMode.EFFECTIVELY_ONCE,
)
#: Heron looks for timed-out tuples ten times within each timeout, so a timeout is late by at most a tenth of its length (B25).
#: With eleven buckets (``stormspark.message.timeout.buckets``), stormspark is as precise.
_TIMEOUT_BUCKETS = 11


def checked(config: object, place: str) -> dict[str, Any]:
    """Return a configuration as Heron submits it: numbers and booleans become strings, and other values do not change.

    None counts as an empty configuration. Raises TypeError if the configuration is anything else that is no dict, or if a key is
    not a string. The error's message begins with ``place``.

    >>> checked({"a": True, "b": 1.5, "c": [1]}, "here")
    {'a': 'true', 'b': '1.5', 'c': [1]}
    """
    if config is None:
        return {}
    if not isinstance(config, Mapping):
        msg = f"{place}: a configuration must be given as a dict, given: {config!r}"
        raise TypeError(msg)
    found: dict[str, Any] = {}
    for key, value in config.items():
        if not isinstance(key, str):
            msg = f"{place}: keys of a configuration must be strings, given: {key!r}"
            raise TypeError(msg)
        if isinstance(value, bool):
            found[key] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            found[key] = str(value)
        else:
            found[key] = value
    return found


def with_defaults(own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a submitted topology: its ``own`` settings, and Heron's defaults for the others (A43).

    >>> with_defaults({"topology.acking": "true"})["topology.reliability.mode"]
    'ATLEAST_ONCE'
    """
    conf = {**DEFAULTS, **own}
    if TOPOLOGY_RELIABILITY_MODE not in own and str(own.get(TOPOLOGY_ENABLE_ACKING)).lower() == "true":
        conf[TOPOLOGY_RELIABILITY_MODE] = TopologyReliabilityMode.ATLEAST_ONCE
    return conf


def typed(submitted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration that a component reads: strings that look like numbers or booleans become numbers or booleans.

    >>> typed({"a": "True", "b": "12", "c": "1.5", "d": "word", "e": [1]})
    {'a': True, 'b': 12, 'c': 1.5, 'd': 'word', 'e': [1]}
    """
    return {
        key: _typed_string(value) if isinstance(value, str) else value for key, value in submitted.items()
    }


def _typed_string(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text.lower() == "true" if text.lower() in ("true", "false") else text


def reliability_mode(config: Mapping[str, Any]) -> str:
    """Return the reliability mode in a typed configuration. Raises `InvalidTopologyError` if Heron has no such mode (C43).

    >>> reliability_mode({"topology.reliability.mode": "ATLEAST_ONCE"}), reliability_mode({})
    ('ATLEAST_ONCE', 'ATMOST_ONCE')
    """
    mode = config.get(TOPOLOGY_RELIABILITY_MODE, TopologyReliabilityMode.ATMOST_ONCE)
    if mode not in _MODES:
        msg = f"{TOPOLOGY_RELIABILITY_MODE} must be one of {', '.join(_MODES)}, got {mode!r}"
        raise InvalidTopologyError(msg)
    return str(mode)


def engine_conf(config: Mapping[str, Any], *, of_topology: bool) -> dict[str, Any]:
    """Return the settings that the engine gets from a typed configuration (A45).

    These are the settings that JSON can write, except those that only the front-end reads. For a topology, there is also the
    setting that makes timeouts as precise as Heron's. Raises `InvalidTopologyError` for values of a topology that Heron rejects
    too.

    >>> engine_conf({"mine": {1, 2}, "topology.debug": True}, of_topology=True)
    {'topology.debug': True, 'stormspark.message.timeout.buckets': 11}
    """
    conf = {key: value for key, value in config.items() if key not in _NOT_FOR_THE_ENGINE and _is_json(value)}
    if not of_topology:
        return conf
    reliability_mode(conf)
    interval = conf.get(TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS)
    if interval is not None and not (isinstance(interval, int | float) and interval > 0):
        msg = f"{TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS} must be above 0, got {interval!r}"
        raise InvalidTopologyError(msg)
    conf.setdefault("stormspark.message.timeout.buckets", _TIMEOUT_BUCKETS)
    return conf


def _is_json(value: object) -> bool:
    if isinstance(value, float) and not math.isfinite(value):
        return False
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError):
        return False
