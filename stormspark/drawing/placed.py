"""Where the boxes and arrows of a graph are, for a page that draws them itself and fills in figures that change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stormspark.drawing.graph import Link, lay_out
from stormspark.drawing.svg import MOST_DRAWN, arrow_paths, loop_paths

__all__ = ["Placed", "PlacedBox", "PlacedLink", "Sized", "place_graph"]

_LOOP = 26.0  # the room above a box with a link to itself
_LABEL_HEIGHT = 28.0


class Sized(NamedTuple):
    """A box of a given size, in pixels."""

    id: str
    width: float
    height: float


class PlacedBox(NamedTuple):
    """A box. ``x`` and ``y`` are its upper left corner."""

    id: str
    x: float
    y: float
    width: float
    height: float


class PlacedLink(NamedTuple):
    """An arrow: the number of its link, the paths of its line and its head, and the middle of its label."""

    number: int
    line: str
    head: str
    x: float
    y: float


@dataclass(frozen=True)
class Placed:
    """A graph of a given size, in pixels."""

    width: float
    height: float
    boxes: Sequence[PlacedBox]
    links: Sequence[PlacedLink]


def place_graph(boxes: Sequence[Sized], ends: Sequence[tuple[str, str]], label: float) -> Placed | None:
    """Place boxes, and the links between them. ``label`` is the width of each link's label.

    None if there is nothing to draw, or more than `MOST_DRAWN`. Links from or to a box that does not exist are left out.

    >>> placed = place_graph([Sized("a", 60, 20), Sized("b", 60, 20)], [("a", "b"), ("b", "b"), ("a", "x")], 50)
    >>> [box.id for box in placed.boxes], [link.number for link in placed.links]
    (['a', 'b'], [0, 1])
    """
    known = {box.id for box in boxes}
    # Each link has its number for a label: two links between the same boxes are told apart by it.
    links = [
        Link(source, target, str(number))
        for number, (source, target) in enumerate(ends)
        if source in known and target in known
    ]
    if not boxes or len(boxes) + len(links) > MOST_DRAWN:
        return None
    own = {link.source for link in links if link.source == link.target}
    layout = lay_out(
        {box.id: (box.width, box.height + 2 * _LOOP * (box.id in own)) for box in boxes},
        links,
        [(label, _LABEL_HEIGHT) for _ in links],
    )
    placed = []
    for number, (link, way) in enumerate(layout.links):
        line, head = arrow_paths(way, back=number in layout.turned)
        placed.append(PlacedLink(int(link.label), line, head, way[1].x, way[1].y - 4))
    height = {box.id: box.height for box in boxes}
    for link in layout.loops:
        place = layout.boxes[link.source]
        top = place.y - height[link.source] / 2
        placed.append(PlacedLink(int(link.label), *loop_paths(place.x, top, place.width), place.x, top - 15))
    return Placed(
        layout.width,
        layout.height,
        [
            PlacedBox(box.id, place.x - box.width / 2, place.y - box.height / 2, box.width, box.height)
            for box in boxes
            for place in (layout.boxes[box.id],)
        ],
        placed,
    )
