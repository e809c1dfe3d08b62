"""Decides whether a child (a process that runs a multilang component) may get the answers to its emits in advance (I8).

After each emit, Storm's ``storm.py`` waits for the answer: the ids of the tasks that get the tuple. So each emit costs a round
trip between two processes, and meanwhile the child does nothing. But if all of a task's streams go to the same single task, all
answers are the same. ``storm.py`` also keeps answers that arrive before it asks for them. So the worker sends such a child some
answers in advance. Then each emit finds an answer at once. When the worker handles an emit, it sends one more answer. The child
reads the same answers as it would read otherwise, and never later.

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

#: How many answers are sent in advance. They must last while the worker is busy with the end of a batch and sends no more.
AHEAD: Final = 2000
#: Groupings that always choose the consumer's task if the consumer has only one.
_ONE_OF_ONE = frozenset(
    {"all", "fields", "global", "load_aware_shuffle", "local_first", "local_or_shuffle", "none", "shuffle"}
)
_IMPORTS_STORM = re.compile(r"^\s*(?:import|from)\s+storm\b", re.MULTILINE)
#: Code from storm.py's ``readTaskIds`` and ``readCommand``, by which storm.py is recognised.
_KEEPS = ("pending_taskids.popleft()", "pending_taskids.append(msg)")


def only_answer(context: TopologyContext) -> list[int] | None:
    """Return the answer to every emit of this task: a list with one task id. Return None if answers may differ."""
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
