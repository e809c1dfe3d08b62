"""Answers to a child's emits, sent before the child needs them (I8).

Storm's ``storm.py`` waits for the task ids of each emit. So each emit costs a round trip between two processes, in which the
child does nothing. But if all of a task's streams go to the same single task, all answers are the same. And ``storm.py`` keeps
task ids that arrive while it waits for something else, because task ids may arrive among tuples. So such a child gets some
answers ahead. Each emit finds one of them at once, and the worker sends another one when it handles the emit. The child reads the
same answers as if none were sent ahead, and none of them arrives later.

This is done only for ``storm.py``, which is recognised by its source code: other libraries may not accept a list for which they
did not ask.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from stormspark.api import TopologyContext

__all__ = ["AHEAD", "keeps_answers", "only_answer"]

#: How many answers are sent ahead: as many as a child may need until the worker is back from the end of a batch.
AHEAD: Final = 2000
#: Groupings that always choose the consumer's task if there is only one.
_ONE_OF_ONE = frozenset(
    {"all", "fields", "global", "load_aware_shuffle", "local_first", "local_or_shuffle", "none", "shuffle"}
)
_IMPORTS_STORM = re.compile(r"^\s*(?:import|from)\s+storm\b", re.MULTILINE)
#: Code from storm.py's ``readTaskIds`` and ``readCommand``.
_KEEPS = ("pending_taskids.popleft()", "pending_taskids.append(msg)")


def only_answer(context: TopologyContext) -> list[int] | None:
    """Return the task ids of every emit of this task, if they are the same for all streams and values; otherwise None."""
    answers = set()
    targets = context.targets(context.this_component_id)
    for stream in context.this_streams:
        consumers = targets.get(stream, {})
        tasks = [task for component in consumers for task in context.component_tasks(component)]
        if len(tasks) != 1 or any(grouping.kind not in _ONE_OF_ONE for grouping in consumers.values()):
            return None
        answers.add(tasks[0])
    return list(answers) if len(answers) == 1 else None


def keeps_answers(command: Sequence[str], folder: str) -> bool:
    """Return whether the command runs a Python script that imports the ``storm.py`` beside it, and this file is Storm's own."""
    script = next((word for word in command[1:] if not word.startswith("-")), "")
    if "python" not in Path(command[0]).name or not script.endswith(".py"):
        return False
    path = Path(folder, script)
    try:
        library = (path.parent / "storm.py").read_text(errors="replace")
        return bool(_IMPORTS_STORM.search(path.read_text(errors="replace"))) and all(
            one in library for one in _KEEPS
        )
    except OSError:
        return False
