"""Which page stands where on the site. Pages keep their place in ``docs/``, so their addresses follow from their files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

__all__ = ["PARTS", "Part", "page_of"]


class Part(NamedTuple):
    """One part of the navigation."""

    title: str
    #: Pages without their suffix, as they are called on the site: ``page``, or ``another title <page>``.
    pages: tuple[str, ...]


PARTS = (
    Part("Begin", ("Overview <overview>", "what-is-where", "glossary")),
    Part(
        "Tutorials",
        ("tutorials/first-topology", "tutorials/port-one", "tutorials/exactly-once", "tutorials/operate"),
    ),
    Part("Port what you have", ("porting/index", "multilang", "streamlet", "transactional")),
    Part(
        "Write topologies",
        ("building", "tasks", "batches", "windows", "async", "arrow", "testing", "notebooks"),
    ),
    Part("Sources and sinks", ("sources", "kafka", "sinks", "spark")),
    Part("Promises", ("delivery", "exactly-once", "state", "backpressure")),
    Part(
        "Operate",
        (
            "installation",
            "operations/fresh-machines",
            "operations/commands",
            "operations/metrics",
            "operations/rebalance",
            "operations/supervision",
            "operations/runbook",
            "operations/page",
            "versions",
            "cluster",
            "operations/cluster",
            "databricks",
            "network",
            "files",
            "stories",
            "surroundings",
        ),
    ),
    Part("Examples", ("examples/index",)),
    Part(
        "Reference",
        (
            "reference/api/index",
            "reference/commands",
            "reference/settings",
            "reference/messages",
            "reference/parity",
            "reference/differences",
        ),
    ),
    Part("Speed", ("benchmarks", "scale")),
    Part("The project", ("project/architecture", "decisions", "project/contributing", "project/changelog")),
)

#: Pages below another page, in the order of the table on that page.
BELOW: Mapping[str, tuple[str, ...]] = {
    "porting/index": ("from-streamparse", "from-heronpy", "from-flux", "from-petrel", "from-java"),
    "examples/index": (
        "kafka-to-delta",
        "exactly-once-totals",
        "enrichment",
        "join",
        "alerts",
        "pv-uv",
        "streamparse",
        "heronpy",
    ),
}

_ELSEWHERE = {
    "README.md": "overview",
    "ARCHITECTURE.md": "project/architecture",
    "CONTRIBUTING.md": "project/contributing",
    "CHANGELOG.md": "project/changelog",
}


def page_of(file: PurePosixPath) -> str | None:
    """Return the page that a file of the repository becomes, or None if it is no page.

    >>> page_of(PurePosixPath("docs/porting/README.md")), page_of(PurePosixPath("README.md"))
    ('porting/index', 'overview')
    >>> page_of(PurePosixPath("docs/README.md")), page_of(PurePosixPath("examples/join.py"))
    ('index', None)
    """
    if str(file) in _ELSEWHERE:
        return _ELSEWHERE[str(file)]
    if file.parts[0] != "docs" or file.suffix != ".md":
        return None
    inside = file.relative_to("docs")
    return str(inside.with_name("index") if inside.name == "README.md" else inside.with_suffix(""))
