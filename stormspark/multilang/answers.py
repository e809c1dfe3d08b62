"""Answers that a child has before it asks (I8).

Storm's ``storm.py`` waits for the task ids of each emit, so that a word is a round trip between two processes, in which the child
does nothing. But where each stream goes to one task, all answers are the same; and ``storm.py`` keeps task ids that come while it
waits for something else, since that is how they come among tuples. So such a child is given some answers ahead: each of its emits
finds one there, and is replaced by the next when the worker comes to it. It is told nothing else than without, and no later.

That is done for ``storm.py`` alone, which is known by its text: not every library bears a list that it has not asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from stormspark.api import TopologyContext

__all__ = ["AHEAD", "keeps_answers", "only_answer"]

#: So many answers are ahead: as many as a child may want until the worker is back from the end of a batch.
AHEAD: Final = 2000
#: Groupings that choose one task out of one.
_ONE_OF_ONE = frozenset(
    {"all", "fields", "global", "load_aware_shuffle", "local_first", "local_or_shuffle", "none", "shuffle"}
)
_IMPORTS_STORM = re.compile(r"^\s*(?:import|from)\s+storm\b", re.MULTILINE)
#: What storm.py does in ``readTaskIds`` and ``readCommand``.
_KEEPS = ("pending_taskids.popleft()", "pending_taskids.append(msg)")


def only_answer(context: TopologyContext) -> list[int] | None:
    """The task ids of all emits of this task, whatever the stream and the values; None where they differ."""
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
    """Whether the program is one in Python that uses the ``storm.py`` beside it, and that is Storm's."""
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
