"""Projects whose spouts take their time; the topologies of each front-end, where ``{}`` is how the spouts ask."""

from pathlib import Path

__all__ = ["PROJECTS", "TARGETS"]

PROJECTS = Path(__file__).parent / "projects"
TARGETS = {
    "streamparse": "streamparse/topologies/{}.py",
    "heronpy": "heronpy/asking_topology.py:{}",
    "multilang": "multilang/asking_topology.py:{}",
}
