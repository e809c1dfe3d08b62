"""Pieces of HTML for notebooks: they need no scripts, nothing from the internet, and fit light and dark pages.

Everything that comes from outside is escaped here. Only `page` and `details` take HTML.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

__all__ = ["details", "escaped", "page", "paragraph", "table"]

#: Letters that HTML and XML do not allow, and those that change the direction of what follows.
_UNWANTED = dict.fromkeys(
    (*range(9), 11, 12, *range(14, 32), 127, 0xFFFE, 0xFFFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
    "�",
)
_STYLE = (
    ".stormspark{font-size:13px;line-height:1.45;color:inherit;overflow-x:auto;text-align:left}"
    ".stormspark h4{margin:.2em 0;font-size:14px}"
    ".stormspark p{margin:.3em 0;white-space:pre-wrap}"
    ".stormspark table{border-collapse:collapse;margin:.4em 0;color:inherit;background:none}"
    ".stormspark th,.stormspark td{text-align:left;padding:2px 10px 2px 0;vertical-align:top;background:none;border:0;"
    "border-bottom:1px solid rgba(128,128,128,.35);white-space:nowrap}"
    ".stormspark td.wide{white-space:pre-wrap;min-width:12em}"
    ".stormspark .number{text-align:right;font-variant-numeric:tabular-nums}"
    ".stormspark .slow{color:#d98e04;font-weight:600}.stormspark .error{color:#d64545;font-weight:600}"
    ".stormspark summary{cursor:pointer;opacity:.8}"
)


def escaped(text: object) -> str:
    """Return a text as HTML shows it, letter by letter.

    >>> escaped('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(str(text).encode("utf-8", "replace").decode("utf-8").translate(_UNWANTED))


def page(title: str, *parts: str) -> str:
    """Return a block of HTML with a title. Each of the ``parts`` is HTML; empty ones are left out."""
    return f"<style>{_STYLE}</style><div class='stormspark'><h4>{escaped(title)}</h4>{''.join(filter(None, parts))}</div>"


def paragraph(text: str, look: str = "", link: str = "") -> str:
    """Return a line of text. ``look`` is "slow", "error" or empty; ``link`` is the address to which the text leads."""
    inside = escaped(text)
    if link:
        inside = f"<a href='{escaped(link)}' target='_blank' rel='noopener'>{inside}</a>"
    return f"<p class='{escaped(look)}'>{inside}</p>" if look else f"<p>{inside}</p>"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], looks: Sequence[str] = ()) -> str:
    """Return a table. ``looks`` says for each column "number", "wide" or nothing. Without rows the table is empty: no HTML.

    >>> table(["bolt", "acked"], [["<count>", "3"]], ["", "number"])
    "<table><tr><th>bolt</th><th class='number'>acked</th></tr><tr><td>&lt;count&gt;</td><td class='number'>3</td></tr></table>"
    """
    classes = [f" class='{look}'" if look else "" for look in looks] or [""] * len(titles)
    lines = [
        "".join(f"<td{look}>{escaped(cell)}</td>" for look, cell in zip(classes, row, strict=True))
        for row in rows
    ]
    if not lines:
        return ""
    head = "".join(f"<th{look}>{escaped(title)}</th>" for look, title in zip(classes, titles, strict=True))
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def details(summary: str, *parts: str, opened: bool = False) -> str:
    """Return a part that can be folded. Each of the ``parts`` is HTML. Nothing, if they are all empty."""
    inside = "".join(parts)
    return (
        f"<details{' open' if opened else ''}><summary>{escaped(summary)}</summary>{inside}</details>"
        if inside
        else ""
    )
