"""Which share of what components emit goes to the event log (J20). Somebody outside of the driver changes it while it runs."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["EventSampling"]


class EventSampling:
    """The percentages of one topology. Any thread may call its methods.

    A component has that of the topology, unless it has one of its own. Off is 0.

    >>> sampling = EventSampling()
    >>> sampling.set(None, 10.0); sampling.set("split", 0.0)
    >>> dict(sampling.sampled), sampling.of("count"), sampling.of("split")
    ({'': 10.0, 'split': 0.0}, 10.0, None)
    """

    def __init__(self) -> None:
        #: The percentages of components that have one of their own. That of the topology is under "".
        self.sampled: Mapping[str, float] = {}

    def set(self, component: str | None, percentage: float | None) -> None:
        """Log a percentage of what a component emits, or the whole topology if None; None logs nothing.

        If the topology is set, components lose what they had.
        """
        if component is None:
            self.sampled = {"": percentage} if percentage else {}
            return
        changed = {**self.sampled, component: percentage or 0.0}
        self.sampled = changed if any(changed.values()) else {}

    def of(self, component: str | None) -> float | None:
        """Return the percentage of a component, or of the topology if None; None if nothing of it is logged."""
        everything = self.sampled.get("", 0.0)
        return (everything if component is None else self.sampled.get(component, everything)) or None
