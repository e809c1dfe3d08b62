"""Compare what the topology of word_count.py counted with a plain Python count of the same text.

python examples/check_word_count.py FOLDER      the folder that was given as wordcount.output
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

from standard_library import lines
from word_count import WORD


def counted_by_storm(folder: Path) -> Counter[str]:
    """What the tasks of the count bolt wrote down. A word is one task's alone, or the grouping is wrong."""
    total: Counter[str] = Counter()
    for file in sorted(folder.glob("task-*.json")):
        counts = json.loads(file.read_text())
        if twice := counts.keys() & total.keys():
            sys.exit(f"{next(iter(twice))!r} was counted by two tasks, one of them that of {file}")
        total.update(counts)
    return total


def counted_by_python() -> Counter[str]:
    """The same count in three lines."""
    total: Counter[str] = Counter()
    for _, line in lines():
        total.update(WORD.findall(line))
    return total


def differences(ours: Counter[str], theirs: Counter[str]) -> list[str]:
    """Where two counts differ, in words."""
    return [
        f"{word!r}: the topology counted {ours[word]:,}, Python {theirs[word]:,}"
        for word in sorted(ours.keys() | theirs.keys())
        if ours[word] != theirs[word]
    ]


def main(folder: Path) -> int:
    """Print the top words and whether the counts are the same; gives the exit code."""
    ours = counted_by_storm(folder)
    if not ours:
        print(f"no counts in {folder}: was the topology stopped gracefully?")
        return 1
    top = ours.most_common(20)
    print("top words:")
    for row in zip(*(islice(top, start, start + 5) for start in range(0, len(top), 5)), strict=False):
        print("".join(f"  {count:>9,} {word:<12}" for word, count in row).rstrip())
    different = differences(ours, counted_by_python())
    if different:
        print(f"{len(different):,} words differ from a plain Python count:")
        print("\n".join(f"  {line}" for line in different[:10]))
        return 1
    print(f"OK: {ours.total():,} words, {len(ours):,} different ones, exactly as plain Python counts them")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
