"""Looks at the built site: each link leads to a page and a place that exist, and no page loads anything from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["wrong_links"]

_URL_IN_CSS = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""")


class _Page(HTMLParser):
    """The links, the loads and the places of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if place := values.get("id") or (values.get("name") if tag == "a" else None):
            self.places.add(place)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") not in ("canonical", "search"):
            self.loads.append(values.get("href", ""))
        elif "src" in values:
            self.loads.append(values["src"])


def wrong_links(site: Path) -> Iterator[str]:
    """Yield what is wrong, a line for each link that leads nowhere and for each load from another host."""
    pages = {path.resolve(): _read(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        shown = path.relative_to(site.resolve())
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    yield f"{shown}: loads {link} from another host"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{shown}: {link} leads to no file"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                yield f"{shown}: {link} leads to no place on that page"
    for path in sorted(site.rglob("*.css")):
        for url in _URL_IN_CSS.findall(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)}: loads {url} from another host"


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page
