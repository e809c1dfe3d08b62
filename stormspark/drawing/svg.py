"""Draws a graph as SVG. Lines and letters have the colour of the text around the picture, so it fits light and dark pages."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from stormspark.drawing.graph import Box, Layout, Link, Place, lay_out
from stormspark.drawing.html import escaped

__all__ = ["MOST_DRAWN", "arrow_paths", "graph_svg", "loop_paths", "shortened"]

#: A graph with more boxes and links is not drawn, because nobody could read it.
MOST_DRAWN = 400

_TITLE, _SMALL = 13, 11  # sizes of letters, in pixels
_WIDE = 0.62  # the width of a letter of a monospaced font, by its size
_LONGEST = 30  # letters; a longer name is cut off, and whole in the tip
_EDGE = 10.0  # around the text of a box
_LOOP = 26.0  # the room above a box with a link to itself
_MARGIN = 8.0
#: These colours can be told from white and from black.
COLOURS = {"spout": "#2a9d5c", "bolt": "#3d86e0", "missing": "#d64545", "slow": "#d98e04", "error": "#d64545"}
_FONT = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace"


def graph_svg(boxes: Sequence[Box], links: Sequence[Link], title: str) -> str:
    """Return a picture of the graph, which begins with ``<svg``. ``title`` is for people who hear the page.

    The result is empty if there is nothing to draw, or more than `MOST_DRAWN`. A link to or from a box that does not exist is
    drawn with a box that is marked as missing.
    """
    known = {box.id for box in boxes}
    ends = dict.fromkeys(name for link in links for name in (link.source, link.target))
    boxes = [*boxes, *(Box(name, name, ("not declared",), "missing") for name in ends if name not in known)]
    if not boxes or len(boxes) + len(links) > MOST_DRAWN:
        return ""
    own = {link.source for link in links if link.source == link.target}
    layout = lay_out(
        {box.id: _size(box, box.id in own) for box in boxes}, links, [_room(link) for link in links]
    )
    drawn = [
        *(_arrow(link, way, back=number in layout.turned) for number, (link, way) in enumerate(layout.links)),
        *(_box(box, layout.boxes[box.id]) for box in boxes),
        *_loops(layout, {box.id: box for box in boxes}),
    ]
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{-_MARGIN:.0f} {-_MARGIN:.0f} {width:.0f} {height:.0f}" style="{_FONT};color:inherit" '
        f'fill="currentColor"><title>{escaped(title)}</title>{"".join(drawn)}</svg>'
    )


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Return a text that is not wider than ``longest`` letters.

    >>> shortened("a" * 50, 10)
    'aaaaaaaaa…'
    """
    if _letters(text) <= longest:
        return text
    cut = text[:longest]
    while _letters(cut) > longest - 1:
        cut = cut[:-1]
    return f"{cut}…"


def _letters(text: str) -> int:
    """Return how wide a text is, in letters: those of East Asia are twice as wide."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _width(text: str, size: int) -> float:
    return _letters(text) * size * _WIDE


def _size(box: Box, loop: bool) -> tuple[float, float]:
    """Return the size of a box's place. The room for its loop is above and below, so that the middle stays."""
    widths = [
        _width(shortened(box.title), _TITLE),
        *(_width(shortened(line, 2 * _LONGEST), _SMALL) for line in box.lines),
    ]
    return max(widths) + 2 * _EDGE, _height(box) + 2 * _LOOP * loop


def _height(box: Box) -> float:
    return 2 * _EDGE + _TITLE + len(box.lines) * (_SMALL + 4)


def _room(link: Link) -> tuple[float, float]:
    return (_width(shortened(link.label), _SMALL), 2.0 * (_SMALL + 3)) if link.label else (0.0, 0.0)


def _text(x: float, y: float, text: str, size: int, longest: int = _LONGEST, style: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="middle"{style}>'
        f"{escaped(shortened(text, longest))}</text>"
    )


def _box(box: Box, place: Place) -> str:
    colour = COLOURS.get(box.mark) or COLOURS[box.kind]
    height = _height(box)
    top = place.y - height / 2
    round_ = height / 2 if box.kind == "spout" else 4.0
    dashed = ' stroke-dasharray="5 3"' if box.kind == "missing" else ""
    y = top + _EDGE + _TITLE - 2
    lines = [_text(place.x, y, box.title, _TITLE, style=' font-weight="600"')]
    for line in box.lines:
        y += _SMALL + 4
        lines.append(_text(place.x, y, line, _SMALL, 2 * _LONGEST, ' fill-opacity="0.8"'))
    tip = "\n".join(filter(None, (box.title, box.tip)))
    return (
        f'<g><title>{escaped(tip)}</title><rect x="{place.x - place.width / 2:.1f}" y="{top:.1f}" '
        f'width="{place.width:.1f}" height="{height:.1f}" rx="{round_:.1f}" fill="{colour}" fill-opacity="0.14" '
        f'stroke="{colour}" stroke-width="{2.5 if box.mark else 1.5}"{dashed}/>{"".join(lines)}</g>'
    )


def arrow_paths(way: Sequence[Place], *, back: bool) -> tuple[str, str]:
    """Return the paths of a link's line and of its head, as SVG writes paths.

    The line ends some pixels before the box, where the arrow's head begins.
    """
    first, last = way[0], way[-1]
    x = first.x + first.width / 2 + 8 * back
    path = f"M{x:.1f},{first.y:.1f}"
    before = first.y
    for place in way[1:]:
        is_end = place is last
        to = place.x - place.width / 2 - 8 * (is_end and not back)
        middle = (x + to) / 2
        path += f"C{middle:.1f},{before:.1f} {middle:.1f},{place.y:.1f} {to:.1f},{place.y:.1f}"
        if not is_end:
            x, before = place.x + place.width / 2, place.y
            path += f"H{x:.1f}"
    if back:
        edge = first.x + first.width / 2
        return path, f"M{edge:.1f},{first.y:.1f}l9,-4.5v9z"
    edge = last.x - last.width / 2
    return path, f"M{edge:.1f},{last.y:.1f}l-9,-4.5v9z"


def _arrow(link: Link, way: Sequence[Place], *, back: bool) -> str:
    path, head = arrow_paths(way, back=back)
    label = _text(way[1].x, way[1].y - 4, link.label, _SMALL) if link.label else ""
    tip = link.tip or f"{link.source} -> {link.target}: {link.label}"
    return (
        f'<g><title>{escaped(tip)}</title><path d="{path}" fill="none" stroke="currentColor" '
        f'stroke-opacity="0.6" stroke-width="{2.4 if link.thick else 1.2}"/><path d="{head}" opacity="0.8"/>{label}</g>'
    )


def loop_paths(x: float, top: float, width: float) -> tuple[str, str]:
    """Return the paths of an arc above a box, and of its head, as SVG writes paths."""
    left, right = x - width / 4, x + width / 4
    return (
        f"M{right:.1f},{top:.1f}C{right:.1f},{top - 18:.1f} {left:.1f},{top - 18:.1f} {left:.1f},{top - 8:.1f}",
        f"M{left:.1f},{top:.1f}l-4.5,-9h9z",
    )


def _loops(layout: Layout, boxes: dict[str, Box]) -> list[str]:
    """Draw the links of boxes to themselves, as one arc above each box."""
    labels: dict[str, list[Link]] = {}
    for link in layout.loops:
        labels.setdefault(link.source, []).append(link)
    drawn = []
    for name, links in labels.items():
        place = layout.boxes[name]
        top = place.y - _height(boxes[name]) / 2
        path, head = loop_paths(place.x, top, place.width)
        tip = "\n".join(link.tip or f"{name} -> {name}: {link.label}" for link in links)
        label = ", ".join(link.label for link in links)
        drawn.append(
            f'<g><title>{escaped(tip)}</title><path d="{path}" fill="none" stroke="currentColor" stroke-opacity="0.6" '
            f'stroke-width="1.2"/><path d="{head}" fill-opacity="0.8"/>'
            f"{_text(place.x, top - 15, label, _SMALL)}</g>"
        )
    return drawn
