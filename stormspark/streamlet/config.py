"""`Config` holds the settings of a topology of streamlets (G24). This module also derives the engine's settings from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from stormspark.errors import InvalidTopologyError
from stormspark.streamlet.resources import Resources
from stormspark.user_line import user_line

__all__ = ["Config", "delivery_semantics", "for_components_alone", "topology_conf"]

_MODE: Final = "topology.reliability.mode"
_CONTAINERS: Final = "topology.stmgrs"
_CPU: Final = "topology.container.cpu"
_RAM: Final = "topology.container.ram"
_MODES: Final = ("ATMOST_ONCE", "ATLEAST_ONCE", "EFFECTIVELY_ONCE")


class Config:
    """The settings of a topology. The argument ``config`` has the initial settings, under the keys of Heron, Storm or stormspark.

    >>> config = Config()
    >>> config.set_delivery_semantics(Config.ATLEAST_ONCE)
    >>> config.set_num_containers(2)
    >>> config.set_user_config("my.greeting", "hello")
    >>> config.api_config
    {'topology.reliability.mode': 'ATLEAST_ONCE', 'topology.stmgrs': 2, 'my.greeting': 'hello'}

    Raises `InvalidTopologyError` for impossible values. As in Heron, the default semantics are ATMOST_ONCE.
    """

    ATMOST_ONCE = 1
    ATLEAST_ONCE = 2
    EFFECTIVELY_ONCE = 3

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        if config is not None and not isinstance(config, dict):
            msg = f"{user_line()}: a Config takes a dict, got {config!r} of type {type(config).__name__}"
            raise InvalidTopologyError(msg)
        self._api_config = {} if config is None else config

    @property
    def api_config(self) -> dict[str, Any]:
        """All settings: the initial ones, and those that were set later."""
        return self._api_config

    def set_delivery_semantics(self, semantics: int) -> None:
        """Set the delivery semantics.

        With ``Config.ATMOST_ONCE``, nothing is tracked. With ``ATLEAST_ONCE``, sources emit failed elements again. With
        ``EFFECTIVELY_ONCE``, batches are transactions, and windows and states outlive workers.
        """
        if semantics not in (Config.ATMOST_ONCE, Config.ATLEAST_ONCE, Config.EFFECTIVELY_ONCE):
            msg = (
                f"{user_line()}: delivery semantics must be Config.ATMOST_ONCE, ATLEAST_ONCE or EFFECTIVELY_ONCE, got "
                f"{semantics!r}"
            )
            raise InvalidTopologyError(msg)
        self._api_config[_MODE] = _MODES[semantics - 1]

    def set_num_containers(self, ncontainers: int) -> None:
        """Set the number of workers."""
        self._api_config[_CONTAINERS] = int(ncontainers)

    def set_container_resources(self, resources: Resources) -> None:
        """Keep these resources. They have no effect, because Spark's own settings decide. A warning says so at the start."""
        if not isinstance(resources, Resources):
            msg = f"{user_line()}: container resources must be Resources, got {resources!r}"
            raise InvalidTopologyError(msg)
        self._api_config[_CPU] = resources.get_cpu()
        self._api_config[_RAM] = resources.get_ram()

    def set_user_config(self, key: str, value: Any) -> None:
        """Set any other setting. ``context.get_config()`` contains it."""
        self._api_config[key] = value


def delivery_semantics(config: Mapping[str, Any]) -> str:
    """Return the delivery semantics of a configuration. Raises `InvalidTopologyError` for unknown semantics.

    >>> delivery_semantics({}), delivery_semantics({"topology.reliability.mode": "ATLEAST_ONCE"})
    ('ATMOST_ONCE', 'ATLEAST_ONCE')
    """
    mode = config.get(_MODE, "ATMOST_ONCE")
    if mode not in _MODES:
        msg = f"{_MODE} must be one of {', '.join(_MODES)}, got {mode!r}"  # A43
        raise InvalidTopologyError(msg)
    return str(mode)


def topology_conf(config: Mapping[str, Any], held_secs: float = 0) -> dict[str, Any]:
    """Return the engine's settings: the settings in ``config``, and other settings that follow from them.

    Heron writes numbers and booleans as strings, so the values of Heron's own keys are converted (A44). ``held_secs`` is the
    longest time for which windows keep an element. The message timeout must be longer than this time (C27).

    >>> topology_conf({"topology.stmgrs": 2})
    {'topology.stmgrs': 2, 'topology.workers': 2, 'topology.acker.executors': 0, 'topology.enable.message.timeouts': False}
    >>> topology_conf({"topology.reliability.mode": "ATLEAST_ONCE"}, held_secs=12)["topology.message.timeout.secs"]
    42
    """
    alone = for_components_alone(config)
    conf = {key: _typed(key, value) for key, value in config.items() if key not in alone}
    if _CONTAINERS in config:
        conf.setdefault("topology.workers", int(config[_CONTAINERS]))
    match delivery_semantics(config):
        case "ATMOST_ONCE":
            conf.setdefault("topology.acker.executors", 0)
            # Nothing can time out, so the message timeout need not be longer than the time that windows keep elements.
            conf.setdefault("topology.enable.message.timeouts", False)
        case "ATLEAST_ONCE" if held_secs:
            conf.setdefault("topology.message.timeout.secs", 30 + held_secs)
    return conf


def for_components_alone(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings whose values JSON can't express. They can't be settings of the engine (A24).

    Heron pickles such values. stormspark pickles them with the components.

    >>> for_components_alone({"a": 1, "b": {1, 2}})
    {'b': {1, 2}}
    """
    return {key: value for key, value in config.items() if not _is_json(value)}


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _typed(key: str, value: Any) -> Any:
    if isinstance(value, str) and key.startswith(("topology.", "heron.")):
        for kind in (int, float):
            with suppress(ValueError):
                return kind(value)
        return {"true": True, "false": False}.get(value.lower(), value)
    return value
