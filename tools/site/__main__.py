"""Builds the site: ``python -m tools.site``. A warning is an error, and so is a link that leads nowhere."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.site.api import made_pages
from tools.site.links import wrong_links
from tools.site.staging import BrokenLinkError, Stage

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "site"


def main() -> int:
    """Return the exit code."""
    from sphinx.cmd.build import build_main

    stage = Stage(ROOT)
    stage.pages |= made_pages()
    try:
        stage.add_documents()
    except BrokenLinkError as error:
        print(error, file=sys.stderr)
        return 1
    pages, html = BUILD / "pages", BUILD / "html"
    (html / "objects.inv").unlink(missing_ok=True)  # what Sphinx writes last
    stage.write(pages)
    options = ["-q", "-W", "--keep-going", "-c", str(Path(__file__).parent), "-d", str(BUILD / "known")]
    # A warning does not keep Sphinx from writing all pages. An error does, and then every link to a missing one would be wrong.
    failed = build_main([*options, str(pages), str(html)])
    wrong = [*wrong_links(html)] if (html / "objects.inv").exists() else []
    for link in wrong:
        print(link, file=sys.stderr)
    if failed or wrong:
        return 1
    print(f"{len(stage.pages)} pages, every link leads somewhere: {(html / 'index.html').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
