"""Sources that tests feed, and a list of what comes out; in this process, in simulated time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from stormspark.local import LocalCluster, LocalTopology
from stormspark.streamlet import Builder, Config

#: What the sources are to emit next, and what `collect` was given.
left: deque[Any] = deque()
right: deque[Any] = deque()
collected: list[Any] = []
#: What has been done once, so that it is not done again after a restart.
done: set[Any] = set()


def from_left() -> Any:
    return left.popleft() if left else None


def from_right() -> Any:
    return right.popleft() if right else None


def collect(element: Any) -> None:
    collected.append(element)


class Once:
    """Raises ``error`` at ``element`` the first time that it comes; passes on all else."""

    def __init__(self, element: Any, error: Exception) -> None:
        self.element, self.error = element, error

    def __call__(self, element: Any) -> Any:
        if element == self.element and "raised" not in done:
            done.add("raised")
            raise self.error
        return element


def begin(on_the_left: Iterable[Any] = (), on_the_right: Iterable[Any] = ()) -> None:
    """Forget everything, and feed the sources."""
    for one in (left, right, collected, done):
        one.clear()
    left.extend(on_the_left)
    right.extend(on_the_right)


SEMANTICS = [Config.ATMOST_ONCE, Config.ATLEAST_ONCE, Config.EFFECTIVELY_ONCE]


@contextmanager
def running(builder: Builder, semantics: int = Config.ATMOST_ONCE, **conf: Any) -> Iterator[LocalTopology]:
    """The topology, on a clock that stands still."""
    config = Config()
    config.set_delivery_semantics(semantics)
    settings = {key.replace("_", "."): value for key, value in conf.items()}
    with LocalCluster(simulated_time=True, seed=3) as cluster:
        yield cluster.submit_topology("streamlets", settings, builder.build("streamlets", config))


def run(builder: Builder, semantics: int = Config.ATMOST_ONCE, **conf: Any) -> list[Any]:
    """What was collected when nothing is left to do."""
    with running(builder, semantics, **conf) as topology:
        topology.run_until_idle()
    return collected
