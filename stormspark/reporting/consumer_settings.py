"""An entry of ``topology.metrics.consumer.register``: what a consumer of metrics wants to get (J17)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stormspark.errors import InvalidTopologyError
from stormspark.metrics import DataPoint

__all__ = ["REGISTER", "ConsumerSettings"]

REGISTER = "topology.metrics.consumer.register"
#: Names of Storm's settings of an entry.
_RETAINED, _WHITE, _BLACK = "max.retain.metric.tuples", "whitelist", "blacklist"
_EXPANDS, _SEPARATOR = "expandMapType", "metricNameSeparator"
_MOST_RETAINED = 100


@dataclass(frozen=True)
class ConsumerSettings:
    """The entry. Its ``parallelism.hint`` has no effect, because a consumer has one thread, in the driver."""

    name: str
    argument: Any = None
    #: How many rounds of data points may wait for the consumer.
    retained: int = _MOST_RETAINED
    white: Sequence[re.Pattern[str]] = ()
    black: Sequence[re.Pattern[str]] = ()
    expands: bool = False
    separator: str = "."

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> ConsumerSettings:
        """Read an entry. Raises `InvalidTopologyError` for values that can't be.

        >>> ConsumerSettings.read({"class": "m:Log", "whitelist": ["^words"]}).takes("words.default")
        True
        """
        retained = _typed(entry, _RETAINED, int, _MOST_RETAINED, "a whole number")
        white, black = (_patterns(entry, key) for key in (_WHITE, _BLACK))
        if white and black:
            msg = f"{_place(entry)} has a {_WHITE} and a {_BLACK}: it may have one of them"
            raise InvalidTopologyError(msg)
        return cls(
            entry["class"],
            entry.get("argument"),
            retained,
            white,
            black,
            _typed(entry, _EXPANDS, bool, False, "true or false"),
            _typed(entry, _SEPARATOR, str, ".", "a string"),
        )

    def takes(self, name: str) -> bool:
        """Return whether the lists let a metric through. A pattern may match any part of its name, as in Storm."""
        if self.white:
            return any(pattern.search(name) for pattern in self.white)
        return not any(pattern.search(name) for pattern in self.black)

    def wanted(self, points: Iterable[DataPoint]) -> list[DataPoint]:
        """Return the data points that the consumer gets, maps expanded if it wants that.

        >>> settings = ConsumerSettings.read({"class": "m:Log", "expandMapType": True, "metricNameSeparator": "/"})
        >>> [(one.name, one.value) for one in settings.wanted([DataPoint("a", 1, "words", {"x": 3}, 0, 60.0)])]
        [('words/x', 3)]
        """
        return [point for one in points for point in self._expanded(one) if self.takes(point.name)]

    def _expanded(self, point: DataPoint) -> Iterator[DataPoint]:
        if not (self.expands and isinstance(point.value, Mapping)):
            yield point
            return
        for key, value in point.value.items():
            yield point._replace(name=f"{point.name}{self.separator}{key}", value=value)


def _place(entry: Mapping[str, Any]) -> str:
    return f"{REGISTER}: {entry['class']!r}"


def _typed(entry: Mapping[str, Any], key: str, kind: type, default: Any, words: str) -> Any:
    value = entry.get(key)
    if value is None:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        msg = f"{_place(entry)}: {key} must be {words}, got {value!r}"
        raise InvalidTopologyError(msg)
    return value


def _patterns(entry: Mapping[str, Any], key: str) -> Sequence[re.Pattern[str]]:
    found = []
    for text in _typed(entry, key, list, [], "a list of regular expressions"):
        try:
            found.append(re.compile(text))
        except (re.error, TypeError) as error:
            msg = f"{_place(entry)}: {key} has {text!r}, which is no regular expression: {error}"
            raise InvalidTopologyError(msg) from error
    return found
