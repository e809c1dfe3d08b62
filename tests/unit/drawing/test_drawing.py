"""Pictures of graphs: well-formed whatever the names are, with every box and link, and nothing on top of something else."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.drawing import MOST_DRAWN, Box, Link, details, escaped, graph_svg, page, paragraph, table
from stormspark.drawing.graph import lay_out
from stormspark.drawing.svg import shortened

NASTY = "</svg><script>alert('x')</script>\"&\x00\x1b\u202e\ud800"
SVG = "{http://www.w3.org/2000/svg}"


def boxes_of(svg: str) -> list[str]:
    """The titles of the boxes."""
    tree = ElementTree.fromstring(svg)
    return [str(group[0].text) for group in tree.iter(f"{SVG}g") if group.find(f"{SVG}rect") is not None]


def links_of(svg: str) -> list[str]:
    """The tips of the arrows."""
    tree = ElementTree.fromstring(svg)
    return [str(group[0].text) for group in tree.iter(f"{SVG}g") if group.find(f"{SVG}rect") is None]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, str]]]:
    names = [f"n{number}" for number in range(draw(st.integers(1, 9)))]
    ends = st.tuples(st.sampled_from(names), st.sampled_from(names))
    return names, draw(st.lists(ends, max_size=20))


@given(graphs())
def test_no_place_lies_on_another_one(graph: tuple[list[str], list[tuple[str, str]]]) -> None:
    """With loops, links to oneself, and several links between two boxes."""
    names, ends = graph
    links = [Link(source, target, "label") for source, target in ends]
    layout = lay_out(dict.fromkeys(names, (60.0, 30.0)), links, [(40.0, 20.0)] * len(links))
    assert set(layout.boxes) == set(names)
    assert len(layout.links) + len(layout.loops) == len(links)
    places = {*layout.boxes.values(), *(place for _, way in layout.links for place in way)}
    for column in {place.column for place in places}:
        inside = sorted((one for one in places if one.column == column), key=lambda one: one.y)
        for upper, lower in pairwise(inside):
            assert upper.y + upper.height / 2 < lower.y - lower.height / 2 + 1e-6
    for number, (link, way) in enumerate(layout.links):
        assert [place.column for place in way] == list(range(way[0].column, way[-1].column + 1))
        ends_of_way = (way[-1], way[0]) if number in layout.turned else (way[0], way[-1])
        assert ends_of_way == (layout.boxes[link.source], layout.boxes[link.target])
    for place in places:
        assert 0 <= place.x <= layout.width and 0 <= place.y <= layout.height


@given(graphs())
def test_every_box_and_link_is_drawn(graph: tuple[list[str], list[tuple[str, str]]]) -> None:
    names, ends = graph
    links = [
        Link(source, target, f"{number}", tip=f"{number}") for number, (source, target) in enumerate(ends)
    ]
    svg = graph_svg([Box(name, name) for name in names], links, "a graph")
    assert sorted(boxes_of(svg)) == names
    tips = [line for tip in links_of(svg) for line in tip.splitlines()]
    assert sorted(map(int, tips)) == list(range(len(links)))


def test_names_can_do_nothing_to_a_page() -> None:
    svg = graph_svg([Box(NASTY, NASTY, (NASTY,), tip=NASTY)], [Link(NASTY, NASTY, NASTY)], NASTY)
    html = page(
        NASTY,
        svg,
        paragraph(NASTY, link=f"file:///'{NASTY}"),
        table([NASTY], [[NASTY]]),
        details(NASTY, paragraph(NASTY)),
    )
    assert "<script" not in html and "</svg><" not in html.replace("</svg><p>", "")
    assert not set("\x00\x1b\u202e\ud800") & set(html)
    html.encode()
    ElementTree.fromstring(svg)


def test_what_is_not_declared_is_drawn_as_missing() -> None:
    svg = graph_svg([Box("count", "count")], [Link("words", "count", "shuffle")], "a graph")
    assert boxes_of(svg) == ["count", "words"]
    assert "not declared" in svg


@pytest.mark.parametrize("count", [0, MOST_DRAWN + 1])
def test_none_and_too_many_are_not_drawn(count: int) -> None:
    assert graph_svg([Box(f"{number}", "x") for number in range(count)], [], "a graph") == ""


def test_wide_letters_count_twice() -> None:
    assert shortened("漢" * 20, 11) == "漢" * 5 + "…"


def test_a_page_needs_nothing_else() -> None:
    """No scripts, nothing from the internet, and no colour of a page that may be dark."""
    html = page("t", graph_svg([Box("a", "a")], [], "g"), paragraph("p"))
    assert "<script" not in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
    assert "currentColor" in html and "background:none" in html


def test_nothing_to_fold_is_nothing() -> None:
    assert details("more", "", "") == "" == table(["a"], [])
    assert escaped(3) == "3"
