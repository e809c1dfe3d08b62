"""Topologies as YAML: Storm's Flux, and Heron's ECO as far as it is the same (K13-K23).

substitution   ${...}, as text, before anything is parsed
document       YAML whose every part knows its line
definition     what a file says, as data
includes       a file and those that it includes
class_names    which Python stands for a class name
objects        constructors, factories, properties, methods
arguments      whether values fit
lowering       the definition to a Topology, by the ordinary builder
eco            what only Heron's files say
java_values, storm_components, shell, kafka, hdfs, samples    what stands for Storm's and Java's own classes
"""

from __future__ import annotations

import os
from pathlib import Path

from stormspark.api.topology import Topology
from stormspark.flux.class_names import register
from stormspark.flux.includes import read_file
from stormspark.flux.lowering import lowered
from stormspark.flux.substitution import read_properties
from stormspark.user_code import import_file, put_first

__all__ = ["CLASSES_FILE", "load", "register"]

#: Beside a YAML file: Python that is imported first, and registers what stands for users' Java classes.
CLASSES_FILE = "flux_classes.py"


def load(
    path: str | os.PathLike[str],
    *,
    filter_file: str | os.PathLike[str] | None = None,
    env_filter: bool = False,
) -> Topology:
    """The topology in a Flux file.

    ``filter_file`` are the properties for ``${key}``; with ``env_filter`` ``${ENV-NAME}`` is the environment variable NAME.
    Modules beside the file can be named in it, by this process and by workers. Raises `TopologyNotFoundError` where there is no
    such file, `InvalidTopologyError` with file and line for what is wrong in it.

    >>> import tempfile
    >>> text = '''
    ... name: word-count
    ... spouts:
    ... - {id: words, className: org.apache.storm.testing.TestWordSpout}
    ... bolts:
    ... - {id: count, className: org.apache.storm.testing.TestWordCounter, parallelism: 2}
    ... streams:
    ... - {from: words, to: count, grouping: {type: FIELDS, args: [word]}}
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "word_count.yaml")
    ...     _ = file.write_text(text)
    ...     topology = load(file)
    >>> topology.name, sorted(topology.components)
    ('word-count', ['count', 'words'])
    """
    file = Path(path)
    properties = read_properties(Path(filter_file)) if filter_file is not None else {}
    definition = read_file(file, properties, os.environ if env_filter else None)
    folder = file.resolve().parent
    put_first(folder)
    if (folder / CLASSES_FILE).is_file():
        import_file(folder / CLASSES_FILE)
    return lowered(definition)
