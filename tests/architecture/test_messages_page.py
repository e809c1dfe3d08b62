"""What the code says when something is wrong is on one page."""

from __future__ import annotations

from tests.messages_page import PAGE, messages, page


def test_the_page_is_up_to_date() -> None:
    """Otherwise: ``make messages``."""
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "docs/reference/messages.md is out of date, run: make messages"
    )


def test_messages_of_each_way_to_say_something_are_found() -> None:
    """Raised with a variable, raised by a function that makes the error, logged, and given as advice."""
    found = set(messages())
    assert ("TopologyNotAliveError" in {kind for kind, _ in found}) and len(found) > 500
    for kind, words in (
        ("InvalidTopologyError", "did you mean"),
        ("Warnings", "was lost"),
        ("Advice at the start", "unknown setting"),
    ):
        assert [text for of, text in found if of == kind and words in text], (kind, words)
