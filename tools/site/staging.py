"""Lays out the pages of the site: those of the repository with their links changed, and those that are made here.

The documents are written for whoever reads them as files, so they link to files: ``../examples/join.py``,
``../ARCHITECTURE.md``. On the site a document is a page with another name, and any other file becomes a page once a
document leads to it. Nothing leads out of the site then, so it can be read without a network and without the repository.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tools.site.navigation import BELOW, PARTS, page_of
from tools.site.sources import source_page, source_text

__all__ = ["BrokenLinkError", "Stage", "documents"]

_TARGET = re.compile(r"\]\(([^)\s]+)\)")
_IMAGES = {".svg", ".png"}


class BrokenLinkError(Exception):
    """A document leads to a file that is not there."""


def documents(root: Path) -> Iterator[PurePosixPath]:
    """Yield the files of the repository that become pages."""
    for path in [*sorted(root.glob("*.md")), *sorted(root.glob("docs/**/*.md"))]:
        file = PurePosixPath(path.relative_to(root))
        if page_of(file) is not None:
            yield file


class Stage:
    """All pages of the site, as texts, before they are written."""

    def __init__(self, root: Path) -> None:
        self._root = root
        #: By their names, with suffix, below the folder of the pages.
        self.pages: dict[str, str] = {}
        self._images: set[PurePosixPath] = set()
        self._linked: list[PurePosixPath] = []

    def add_documents(self) -> None:
        """Add the pages of the repository, and those of all files to which they lead."""
        for file in documents(self._root):
            page = page_of(file) or ""
            text = self.with_links((self._root / file).read_text(encoding="utf-8"), file, page)
            self.pages[f"{page}.md"] = text + contents(page)
        while self._linked:
            file = self._linked.pop()
            page = source_page(file)
            if f"{page}.md" not in self.pages:
                self.pages[f"{page}.md"] = self.with_links(source_text(self._root, file), file, page)

    def with_links(self, text: str, file: PurePosixPath, page: str) -> str:
        """Return the text of a file with links that lead from ``page`` to pages. Code stays as it is."""
        lines: list[str] = []
        fence = ""
        for number, line in enumerate(text.split("\n"), 1):
            mark = re.match(r" *(`{3,})", line)
            if mark and not fence:
                fence = mark[1]
            elif fence and line.strip().startswith(fence) and set(line.strip()) == {"`"}:
                fence = ""
            elif not fence and not line.startswith("    "):
                lines.append(_TARGET.sub(lambda found: self._link(found[1], file, number, page), line))  # noqa: B023
                continue
            lines.append(line)
        return "\n".join(lines)

    def _link(self, link: str, file: PurePosixPath, number: int, page: str) -> str:
        name, mark, anchor = link.partition("#")
        if not name or ":" in name:
            return f"]({link})"
        there = PurePosixPath(os.path.normpath(file.parent / name))
        if not (self._root / there).exists():
            msg = f"{file}:{number}: {link} leads to {there}, which does not exist: correct the link"
            raise BrokenLinkError(msg)
        if there.suffix in _IMAGES:
            self._images.add(there)
            place = f"images/{there}"
        elif to := page_of(there):
            place = f"{to}.md"
        else:
            self._linked.append(there)
            place = f"{source_page(there)}.md"
        return f"]({os.path.relpath(place, PurePosixPath(page).parent)}{mark}{anchor})"

    def write(self, folder: Path) -> None:
        """Write all pages below the folder. A page that stays the same keeps its time, so Sphinx does not read it again."""
        contents: dict[Path, bytes] = {folder / name: text.encode() for name, text in self.pages.items()}
        contents |= {folder / "images" / one: (self._root / one).read_bytes() for one in self._images}
        for old in [*folder.rglob("*")]:
            if old.is_file() and old not in contents:
                old.unlink()
        for place, content in contents.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists() or place.read_bytes() != content:
                place.write_bytes(content)


def contents(page: str) -> str:
    """Return what makes the pages below a page appear in the navigation. It is not seen on the page itself."""
    if page == "index":
        return "".join(_toctree(one.pages, f":caption: {one.title}\n") for one in PARTS)
    return _toctree(BELOW[page]) if page in BELOW else ""


def _toctree(pages: tuple[str, ...], option: str = "") -> str:
    return "\n".join(("\n```{toctree}\n" + option + ":hidden:\n", *pages, "```\n"))
