"""Lays out a directed graph in columns, from left to right.

1. Links that lead back, as in a loop, are turned round for the layout. A box's column is the length of the longest way to it.
2. Between two columns of boxes there is a column of labels. Each link takes a place in each column that it passes, so that no
   link runs through a box, and no label lies on another one.
3. In each column, places are put in the order of their neighbours' means, so that few links cross. Then each place moves as near
   to its neighbours as the others of its column allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

__all__ = ["Box", "Layout", "Link", "Place", "lay_out"]

_GAP = 14.0  # between two places of a column
_BETWEEN = 18.0  # between two columns
_SWEEPS = 8


@dataclass(frozen=True)
class Box:
    """A box with a title and smaller lines below it. ``kind`` and ``mark`` choose its look; ``tip`` is shown on hovering."""

    id: str
    title: str
    lines: tuple[str, ...] = ()
    kind: str = "bolt"  # "spout" | "bolt" | "missing"
    mark: str = ""  # "" | "slow" | "error"
    tip: str = ""


@dataclass(frozen=True)
class Link:
    """An arrow from one box to another, with a label."""

    source: str
    target: str
    label: str = ""
    thick: bool = False
    tip: str = ""


@dataclass(eq=False)
class Place:
    """A place in a column: that of a box, of a label, or of a link that passes. ``x`` and ``y`` are its middle."""

    column: int
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    before: list[Place] = field(default_factory=list)
    after: list[Place] = field(default_factory=list)


@dataclass(frozen=True)
class Layout:
    """Where everything is. The places of a link are in the order from the left, from box to box; ``turned`` are the links that
    lead from the right to the left.
    """

    width: float
    height: float
    boxes: Mapping[str, Place]
    links: Sequence[tuple[Link, Sequence[Place]]]
    turned: frozenset[int]
    loops: Sequence[Link]


def lay_out(
    boxes: Mapping[str, tuple[float, float]], links: Sequence[Link], labels: Sequence[tuple[float, float]]
) -> Layout:
    """Lay out boxes of given sizes, and links whose labels have given sizes. Each link's ends must be boxes."""
    straight = [number for number, link in enumerate(links) if link.source != link.target]
    turned = _turned(boxes, [(number, links[number]) for number in straight])
    ends = {
        number: (links[number].target, links[number].source)
        if number in turned
        else (links[number].source, links[number].target)
        for number in straight
    }
    column = _columns(boxes, ends.values())
    placed = {name: Place(2 * column[name], *size) for name, size in boxes.items()}
    ways: list[tuple[Link, Sequence[Place]]] = []
    for number, (left, right) in ends.items():
        first, last = placed[left], placed[right]
        way = [first]
        for between in range(first.column + 1, last.column):
            size = labels[number] if between == first.column + 1 else (0.0, 0.0)
            way.append(Place(between, *size))
        way.append(last)
        for one, other in pairwise(way):
            one.after.append(other)
            other.before.append(one)
        ways.append((links[number], way))
    columns = _filled(placed.values(), ways)
    _order(columns)
    _stack(columns)
    width, height = _place(columns)
    loops = [link for link in links if link.source == link.target]
    return Layout(
        width,
        height,
        placed,
        ways,
        frozenset(index for index, number in enumerate(ends) if number in turned),
        loops,
    )


def _turned(boxes: Iterable[str], links: Sequence[tuple[int, Link]]) -> set[int]:
    """Return the numbers of links that close a loop, in the order in which a search in depth meets them."""
    out: dict[str, list[tuple[int, str]]] = {}
    for number, link in links:
        out.setdefault(link.source, []).append((number, link.target))
    done: set[str] = set()
    turned: set[int] = set()
    for start in boxes:
        if start in done:
            continue
        under_way = {start}
        stack = [(start, iter(out.get(start, ())))]
        while stack:
            name, rest = stack[-1]
            step = next(rest, None)
            if step is None:
                stack.pop()
                under_way.discard(name)
                done.add(name)
            elif step[1] in under_way:
                turned.add(step[0])
            elif step[1] not in done:
                under_way.add(step[1])
                stack.append((step[1], iter(out.get(step[1], ()))))
    return turned


def _columns(boxes: Iterable[str], ends: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return for each box the length of the longest way to it."""
    after: dict[str, list[str]] = {name: [] for name in boxes}
    waits = dict.fromkeys(after, 0)
    for left, right in ends:
        after[left].append(right)
        waits[right] += 1
    column = dict.fromkeys(after, 0)
    ready = [name for name, count in waits.items() if not count]
    while ready:
        name = ready.pop()
        for following in after[name]:
            column[following] = max(column[following], column[name] + 1)
            waits[following] -= 1
            if not waits[following]:
                ready.append(following)
    return column


def _filled(boxes: Iterable[Place], ways: Iterable[tuple[Link, Sequence[Place]]]) -> list[list[Place]]:
    places = [*boxes, *(place for _, way in ways for place in way[1:-1])]
    columns: list[list[Place]] = [[] for _ in range(max((place.column for place in places), default=-1) + 1)]
    for place in places:
        columns[place.column].append(place)
    return columns


def _order(columns: Sequence[list[Place]]) -> None:
    """Sort each column by the means of the neighbours' ranks, to and fro. Places without neighbours stay where they are."""
    rank: dict[Place, float] = {
        place: float(number) for column in columns for number, place in enumerate(column)
    }
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        for column in columns if forward else columns[::-1]:
            wanted = {}
            for place in column:
                neighbours = place.before if forward else place.after
                wanted[place] = fmean(rank[one] for one in neighbours) if neighbours else rank[place]
            column.sort(key=lambda place: wanted[place])
            for number, place in enumerate(column):
                rank[place] = float(number)


def _stack(columns: Sequence[Sequence[Place]]) -> None:
    for column in columns:
        y = 0.0
        for place in column:
            place.y = y + place.height / 2
            y += place.height + _GAP
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        for column in columns if forward else columns[::-1]:
            _move(column, forward=forward)


def _move(column: Sequence[Place], *, forward: bool) -> None:
    """Move the places of a column as near to the means of their neighbours as their order and their heights allow.

    The least squares under these limits: places that would overlap become one block, which stands at its mean.
    """
    offset, before = 0.0, None
    blocks: list[tuple[float, int]] = []  # the mean, and how many places
    offsets = []
    for place in column:
        if before is not None:
            offset += (before.height + place.height) / 2 + _GAP
        offsets.append(offset)
        neighbours = (place.before if forward else place.after) or place.before or place.after
        wanted = fmean(one.y for one in neighbours) if neighbours else place.y
        block = (wanted - offset, 1)
        while blocks and blocks[-1][0] >= block[0]:
            mean, count = blocks.pop()
            block = ((mean * count + block[0] * block[1]) / (count + block[1]), count + block[1])
        blocks.append(block)
        before = place
    means = [mean for mean, count in blocks for _ in range(count)]
    for place, mean, moved in zip(column, means, offsets, strict=True):
        place.y = mean + moved


def _place(columns: Sequence[Sequence[Place]]) -> tuple[float, float]:
    """Set ``x``, and let ``y`` begin at 0. Return the width and the height of all."""
    x = 0.0
    for column in columns:
        width = max((place.width for place in column), default=0.0)
        for place in column:
            place.x = x + width / 2
        x += width + _BETWEEN
    everything = [place for column in columns for place in column]
    top = min((place.y - place.height / 2 for place in everything), default=0.0)
    for place in everything:
        place.y -= top
    height = max((place.y + place.height / 2 for place in everything), default=0.0)
    return max(x - _BETWEEN, 0.0), height
