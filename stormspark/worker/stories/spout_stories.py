"""Chooses which trees of one spout's task are traced. These trees are samples, and replays of messages that failed."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from stormspark.acker import SpoutAccount, Tree, Verdict
from stormspark.worker.stories.stories import Stories
from stormspark.worker.stories.story import root_text

if TYPE_CHECKING:
    from stormspark.worker.spout_task import SpoutTask
    from stormspark.worker.tuples.spout_collector import SpoutCollector

__all__ = ["SpoutStories"]

#: Each task keeps at most this many ids of failed messages, for at most this many seconds, to trace the next emit of each id.
#: If as many ids expire without another emit, the spout seems to replay nothing, and the task keeps no more ids.
_KEPT_IDS = 100
_ID_SECS = 600.0
#: If samples should be at most this many trees apart, their distance is exact. If samples should be rarer, only the first tree
#: of a turn can be a sample. Then a turn without a sample costs nothing extra.
_EXACT = 64

MakeTree = Callable[[SpoutAccount, Hashable, float], Tree]


class SpoutStories:
    """The rule by which one spout's task chooses the trees to trace."""

    def __init__(self, stories: Stories, spout: SpoutTask) -> None:
        self._stories, self._spout = stories, spout
        self._failed: dict[Hashable, tuple[float, str]] = {}
        self._in_vain = 0
        self._next_sample = stories.sample
        self._collector: SpoutCollector

    def begin(self, collector: SpoutCollector) -> None:
        """Begin to choose trees of a new instance of the spout. ``collector`` is the collector of this instance."""
        self._collector = collector
        self._in_vain = 0
        self._next_sample = self._stories.sample

    def maker(self, now: float) -> MakeTree:
        """Return the function that makes the trees of the next turn. It is `Tree` itself, at no extra cost, if no tree is to be
        traced.
        """
        failed = self._failed
        while failed and next(iter(failed.values()))[0] < now - _ID_SECS:
            del failed[next(iter(failed))]
            self._in_vain += 1
        sample = self._stories.sample
        if failed or (sample and (sample <= _EXACT or self._collector.emitted >= self._next_sample)):
            return self._make
        return Tree

    def _make(self, account: SpoutAccount, message_id: Hashable, now: float) -> Tree:
        stories, collector = self._stories, self._collector
        if self._failed:
            try:
                failed = self._failed.pop(message_id, None)
            except Exception:  # an id without a usable hash is allowed
                failed = None
            if failed is not None:
                self._in_vain = 0
                return stories.traced(self._spout, account, message_id, now, failed[1])
        if stories.sample and collector.emitted >= self._next_sample:
            self._next_sample = collector.emitted + stories.sample
            collector.new_tree = self.maker(now)
            if stories.may_sample(now):
                return stories.traced(self._spout, account, message_id, now, None)
        return Tree(account, message_id, now)

    def failed(self, tree: Tree, verdict: Verdict, now: float) -> Verdict:
        """Note the story of a failed tree, and have the next emit of its message id traced. Return the verdict together with
        the root that the story is filed under.
        """
        traced = False
        if len(self._failed) < _KEPT_IDS and self._in_vain < _KEPT_IDS:
            try:
                self._failed[tree.message_id] = (now, "")
                traced = True
            except Exception:
                traced = False
        with_root = self._stories.failed(self._spout, tree, verdict, traced)
        if traced:
            self._failed[tree.message_id] = (now, root_text(with_root.root) if with_root.root else "")
            self._collector.new_tree = self._make  # the spout's `fail` may emit the message again at once
        return with_root
