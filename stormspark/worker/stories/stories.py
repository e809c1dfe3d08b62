"""The stories of a worker. This module decides which trees get a story, and writes the stories.

*Every tree that fails* gets a story, up to a number of stories per second. Further failures are only counted. If the tree was not
traced, its story names the task that failed it, or the places where its tuples were when it timed out. Such a story needs no
earlier recording. The next emit of the same message id is traced. *Of all other trees*, one in ``stormspark.story.sample`` is
traced, again up to a number per second.

A story is noted when its tree ends, and written at the end of the superstep. Stories of failures go to the file
``stories-<worker>.jsonl`` in the log folder, and all others to ``stories-<worker>-sampled.jsonl``. Both files are rotated.
Without a log folder stories are kept in memory. A failed tree may have tuples in other workers. If it was traced, or timed out
because of these tuples, the worker of its spout (the tree's home) asks all other workers. Each of them writes what it knows.
"""

from __future__ import annotations

import platform
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stormspark.acker import Ledger, Outcome, SpoutAccount, TracedTree, Tree, Verdict
from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.stories.holders import find_holders
from stormspark.worker.stories.recording import Inbox, Recording, Scene
from stormspark.worker.stories.story import Holder, root_text, sentences
from stormspark.worker.stories.story_lines import StoryLines

if TYPE_CHECKING:
    from stormspark.worker.bolt_task import BoltTask
    from stormspark.worker.spout_task import SpoutTask
    from stormspark.worker.tuples.lanes import Lanes
    from stormspark.worker.vectorised.lanes import BatchLanes

__all__ = ["Stories"]

#: How many recordings of other workers' trees are kept, in case these trees fail.
_KEPT_PARTS = 1000


class _PerSecond:
    """A limiter of stories. At most ``most`` stories may be written per second of the worker's clock."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._since = float("-inf")
        self._taken = 0

    def take(self, now: float) -> bool:
        if not 0 <= now - self._since < 1.0:
            self._since, self._taken = now, 0
        self._taken += 1
        return self._taken <= self._most


class Stories:
    """The stories of one worker. They are written to ``folder``. ``at`` returns the task whose code runs, and the time when the
    code began.
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        worker: int,
        incarnation: int,
        clock: Callable[[], float],
        epoch: float,
        at: Callable[[], tuple[str, float] | None],
        folder: Path | None,
    ) -> None:
        settings = plan.settings
        self.sample = settings.story_sample
        self._plan, self._worker, self._clock = plan, worker, clock
        self._names = {task.id: f"{task.component}[{task.index}]" for task in plan.tasks.values()}
        self.scene = Scene(worker, clock, at, self._names, self._inboxes_from)
        self._others = [other for other in range(plan.workers) if other != worker]
        self._samples = _PerSecond(settings.story_samples_per_sec)
        self._failures = _PerSecond(settings.story_failures_per_sec)
        self._most_failures = settings.story_failures_per_sec
        self._without_story = 0
        self._parts: OrderedDict[int, Recording] = OrderedDict()
        self._timed_out: dict[Tree, list[Holder]] = {}  # trees whose spouts have not heard of the fail yet
        self._lines: list[tuple[bool, dict[str, Any]]] = []  # each is (whether the tree failed, line)
        self._place = {"worker": worker, "life": incarnation, "host": platform.node(), "epoch": epoch}
        stem = None if folder is None else folder / f"stories-{worker}"
        size = (settings.log_max_bytes, settings.log_backup_count)
        self._failure_file = StoryLines(stem and stem.with_name(f"{stem.name}.jsonl"), *size)
        self._sample_file = StoryLines(stem and stem.with_name(f"{stem.name}-sampled.jsonl"), *size)

    def connect(
        self,
        ledger: Ledger,
        spouts: Iterable[SpoutTask],
        bolts: Sequence[BoltTask],
        lanes: Collection[Lanes | BatchLanes],
    ) -> None:
        """Take over the worker's ledger, tasks and lanes. Call this before the first tuple."""
        self._ledger = self.scene.ledger = ledger
        self._spouts = {spout.id: spout for spout in spouts}
        self._bolts, self._lanes = bolts, lanes
        self._rates = {spout.id: (self._clock(), 0) for spout in self._spouts.values()}

    # -- tracing ---------------------------------------------------------------------------------------------

    def part(self, root: int) -> Recording:
        """Return the trace for this worker's part of another worker's tree."""
        recording = self._parts.get(root)
        if recording is None:
            recording = self._parts[root] = Recording(self.scene, root)
            if len(self._parts) > _KEPT_PARTS:
                self._parts.popitem(last=False)
        return recording

    def may_sample(self, now: float) -> bool:
        """Return whether one more sample may be traced in this second."""
        return self._samples.take(now)

    def traced(
        self,
        spout: SpoutTask,
        account: SpoutAccount,
        message_id: Hashable,
        now: float,
        replay_of: str | None,
    ) -> Tree:
        """Make a traced tree."""
        home = _home(spout, message_id, now) | {"replay_of": replay_of}
        recording = Recording(self.scene, self._ledger.new_root(traced=True), home)
        return TracedTree(account, message_id, now, recording)

    def _inboxes_from(self, name: str) -> list[Inbox]:
        """Return the inboxes that a task can send to, each once."""
        sender = next((task for task, its in self._names.items() if its == name), None)
        if sender is None:
            return []
        component = self._plan.tasks[sender].component
        targets = {
            t
            for e in self._plan.edges
            if e.source == component
            for t in self._plan.components[e.target].tasks
        }
        here = [Inbox(bolt.name, bolt.inbox, True, bolt.queue) for bolt in self._bolts if bolt.id in targets]
        away = [
            Inbox(self._names[target], lane, False)
            for lanes in self._lanes
            for target, lane in lanes.by_target(sender)
        ]
        return here + away

    # -- failures --------------------------------------------------------------------------------------------

    def explain(self, expired: Sequence[Tree]) -> Mapping[Tree, str]:
        """Find the holders of trees that are about to time out, and describe them. Also report the setting that would help
        their spouts (W3).
        """
        now = self._clock()
        counts = Counter(tree.account.task for tree in expired)
        for spout in self._spouts.values():
            since, acked = self._rates[spout.id]
            self._rates[spout.id] = (now, spout.counters.acked)
            if counts[spout.id]:
                advice = self._advice(spout, counts[spout.id], spout.counters.acked - acked, now - since)
                spout.reports.add_failure("advice", advice)
        self._timed_out.clear()
        explained = expired[: self._most_failures]
        found = find_holders({tree: tree for tree in explained}, self._bolts, self._lanes, self._names, now)
        for tree in explained:
            holders: list[Holder] = found.get(tree, [])
            recording = tree.trace if isinstance(tree, TracedTree) else None
            holders += self._missing(holders, tree.count, recording, self._spouts[tree.account.task])
            if tree.value:
                holders.append(Holder("other workers", "elsewhere", 0))
            self._timed_out[tree] = holders
        return {tree: sentences(holders) for tree, holders in self._timed_out.items()}

    def _missing(
        self, holders: Sequence[Holder], count: int, recording: object, spout: SpoutTask | None = None
    ) -> list[Holder]:
        """Return holders for open edges whose tuples were not found. A bolt has dropped the tuples, or a group of emits is open
        (X68).
        """
        missing = count - sum(holder.tuples for holder in holders)
        if missing <= 0:
            return []
        if not isinstance(recording, Recording):
            if spout is not None and spout.calls.suspended:
                return [Holder(spout.name, "emitting", missing)]
            return [Holder(f"a task of worker {self._worker}", "dropped", missing)]
        left = recording.open.copy()
        for holder in holders:
            left[holder.task] -= holder.tuples * (holder.state != "leaving")
        by = spout.name if spout is not None else None
        return [
            Holder(task, "emitting" if task == by else "dropped", tuples)
            for task, tuples in left.items()
            if tuples > 0
        ]

    def _advice(self, spout: SpoutTask, expired: int, acked: int, seconds: float) -> str:
        """Return a sentence that says how many of the pending trees timed out, and which setting would help (W3)."""
        pending, timeout = spout.account.pending, self._plan.settings.message_timeout_secs
        text = (
            f"{expired:,} of {pending:,} pending trees timed out (topology.message.timeout.secs is {timeout:g}); "
            f"{acked:,} were acked in the last {seconds:.0f} s"
        )
        if not acked:
            return f"{text}. No tree is acked any more: the stories name the holders of their tuples"
        needed = pending * seconds / acked
        if needed < timeout / 2:
            return f"{text}, so the timeout is long enough, and these trees are stuck: the stories name the holders"
        fewer = max(1, int(acked / seconds * timeout / 2))
        return (
            f"{text}. At that rate the pending trees take {needed:,.0f} s: set topology.max.spout.pending to {fewer:,} or less, "
            f"or the timeout to {ceil(2 * needed):,} or more; otherwise spouts replay messages that are only late, not lost"
        )

    def failed(self, spout: SpoutTask, tree: Tree, verdict: Verdict, next_is_traced: bool) -> Verdict:
        """Note the story of a failed tree before the spout hears of the fail. Return the verdict with the story's root in it.

        If too many trees have failed in this second, only count the tree, and return the verdict as it is.
        """
        now = self._clock()
        holders = self._timed_out.pop(tree, None)
        recording = tree.trace if isinstance(tree, TracedTree) else None
        if not self._failures.take(now) and holders is None:
            self._without_story += 1
            return verdict
        if isinstance(recording, Recording) and recording.home is not None:
            root, home, ended_at = recording.root_id, recording.home, recording.ended_at
        else:
            recording, root = None, tree.root_id or self._ledger.new_root(traced=False)
            home, ended_at = _home(spout, tree.message_id, tree.emitted_at), now
        home |= {"ended_at": ended_at, "untold": self._without_story}
        self._without_story = 0
        reason = self._reason(verdict)
        home |= {
            "outcome": verdict.outcome.value,
            "reason": reason.removesuffix(f": {sentences(holders or [])}"),
        }
        self._write(True, root, recording, holders or [], home)
        late = verdict.outcome is Outcome.TIMED_OUT and tree.value
        if tree.root_id and (late or recording is not None):
            self._ledger.ask(root, self._others)
        after = "; if it is emitted again, that is traced" if next_is_traced else ""
        how = f"failed by {reason}" if verdict.component else f"{verdict.outcome.value}: {reason}"
        spout.reports.add_failure(
            verdict.outcome.value, f"message {home['message_id']:.100} {how}; story {root_text(root)}{after}"
        )
        return replace(verdict, root=root)

    def _reason(self, verdict: Verdict) -> str:
        by = self._names.get(verdict.task, f"{verdict.component}[{verdict.task}]") if verdict.task else None
        return ": ".join(part for part in (by, verdict.reason) if part)

    # -- writing ---------------------------------------------------------------------------------------------

    def end_superstep(self) -> None:
        """Answer other workers that have asked for stories of failed trees, and write all noted stories."""
        if self._ledger.wanted_stories:
            self._answer()
        if self.scene.done:
            for recording in self.scene.done:
                home = recording.home
                if home is not None:
                    home |= {"outcome": Outcome.ACKED.value, "ended_at": recording.ended_at}
                self._write(False, recording.root_id, recording, [], home)
            self.scene.done.clear()
        self.scene.tidy_up()
        if self._lines:
            for failure, line in self._lines:
                (self._failure_file if failure else self._sample_file).add(line)
            self._lines.clear()

    def _answer(self) -> None:
        """Note what this worker knows of other workers' trees that have failed."""
        asked = {root: root for root in self._ledger.wanted_stories[: self._most_failures]}
        self._ledger.wanted_stories.clear()
        found = find_holders(asked, self._bolts, self._lanes, self._names, self._clock())
        for root in asked:
            holders: list[Holder] = found.get(root, [])
            recording = self._parts.get(root)
            part = self._ledger.part(root)
            if part is not None:
                holders += self._missing(holders, part.count, recording)
            if holders or recording is not None:
                self._write(True, root, recording, holders, None)

    def _write(
        self,
        failure: bool,
        root: int,
        recording: Recording | None,
        holders: Sequence[Holder],
        home: dict[str, Any] | None,
    ) -> None:
        line: dict[str, Any] = {"root": root_text(root), **self._place, "at": self._clock()}
        if home is not None:
            line["home"] = home
        if recording is not None:
            line |= {"events": recording.events, "omitted": recording.omitted}
        if holders:
            line["holders"] = [[h.task, h.state, h.tuples, h.seconds] for h in holders]
        self._lines.append((failure, line))

    def close(self) -> None:
        """Close the files."""
        self._failure_file.close()
        self._sample_file.close()

    def lines(self) -> list[dict[str, Any]]:
        """Return the lines that are kept in memory, samples first."""
        return [*self._sample_file.kept, *self._failure_file.kept]


def _home(spout: SpoutTask, message_id: Hashable, emitted_at: float) -> dict[str, Any]:
    return {"spout": spout.name, "message_id": _text(message_id), "emitted_at": emitted_at}


def _text(message_id: Hashable) -> str:
    """Return the text of a message id for people. The repr of users' classes may raise."""
    try:
        return repr(message_id)[:200]
    except Exception as error:
        return f"<{type(message_id).__name__}, whose repr raised {type(error).__name__}>"
