"""Compares the counts of the topology in word_count.py with counts that plain Python makes of the same text.

python examples/check_word_count.py OUTPUT [FOLDER]

OUTPUT and FOLDER are the values that the settings wordcount.output and wordcount.folder had when the topology ran.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from standard_library import lines
from word_count import WORD


def counted_by_topology(output: Path) -> Counter[str]:
    """Return the counts that the tasks of the count bolt have written. No two tasks may have counted the same word."""
    total: Counter[str] = Counter()
    for file in sorted(output.glob("task-*.json")):
        counts = json.loads(file.read_text())
        if twice := counts.keys() & total.keys():
            sys.exit(f"{next(iter(twice))!r} was counted by two tasks; one of them wrote {file}")
        total.update(counts)
    return total


def counted_by_python(folder: Path | None) -> Counter[str]:
    """Count the words of the same text with three lines of plain Python."""
    total: Counter[str] = Counter()
    for _, line in lines(folder=folder):
        total.update(WORD.findall(line))
    return total


def differences(ours: Counter[str], theirs: Counter[str]) -> list[str]:
    """Return one sentence for each word whose two counts differ."""
    return [
        f"{word!r}: the topology counted {ours[word]:,}, Python {theirs[word]:,}"
        for word in sorted(ours.keys() | theirs.keys())
        if ours[word] != theirs[word]
    ]


def main(output: Path, folder: Path | None = None) -> int:
    """Print the most frequent words, and whether the counts are the same. Returns the exit code."""
    ours = counted_by_topology(output)
    if not ours:
        print(f"no counts in {output}: was the topology stopped gracefully?")
        return 1
    top = ours.most_common(20)
    print("top words:")
    rows = -(-len(top) // 4)
    for row in range(rows):
        print("".join(f"  {count:>9,} {word:<12}" for word, count in top[row::rows]).rstrip())
    different = differences(ours, counted_by_python(folder))
    if different:
        print(f"{len(different):,} words differ from a plain Python count:")
        print("\n".join(f"  {line}" for line in different[:10]))
        return 1
    print(f"OK: {ours.total():,} words, {len(ours):,} different ones, exactly as plain Python counts them")
    return 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(*map(Path, sys.argv[1:])))
