"""Decides whether a child may get the answers to its emits before it needs them (I8).

Storm's ``storm.py`` waits for the task ids of each emit. So each emit costs a round trip between two processes, and meanwhile the
child does nothing. But if all of a task's streams go to the same single task, all answers are the same. ``storm.py`` also keeps
task ids that arrive before it asks for them. So the worker sends such a child some answers in advance. Each emit finds an answer
at once, and the worker sends another answer when it handles the emit. The child reads the same answers as it would read without
this, and never later.

The worker does this only for ``storm.py``, which is recognised by its source code. Other libraries may not accept a list of task
ids before they ask for one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from stormspark.api import TopologyContext

__all__ = ["AHEAD", "keeps_answers", "only_answer"]

#: How many answers are sent in advance. They must be enough for the child while the worker is busy with the end of a batch.
AHEAD: Final = 2000
#: The groupings that, if the consumer has only one task, always choose this task.
_ONE_OF_ONE = frozenset(
    {"all", "fields", "global", "load_aware_shuffle", "local_first", "local_or_shuffle", "none", "shuffle"}
)
_IMPORTS_STORM = re.compile(r"^\s*(?:import|from)\s+storm\b", re.MULTILINE)
#: Code from storm.py's ``readTaskIds`` and ``readCommand``.
_KEEPS = ("pending_taskids.popleft()", "pending_taskids.append(msg)")


def only_answer(context: TopologyContext) -> list[int] | None:
    """Return the ids of the tasks that receive this task's emits. Returns None unless they are the same for every emit."""
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
    """Return whether the command runs a Python script that imports Storm's own ``storm.py`` from the script's folder."""
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
