"""Loads topologies from YAML files: Storm's Flux, and Heron's ECO as far as the two formats are the same (K13-K23).

substitution   replaces ${...} before anything is parsed
document       reads YAML, and keeps the line of each part
definition     the content of a file, as data
includes       reads a file together with the files that it includes
class_names    finds the Python class or function for a class name
objects        makes objects: constructors, factories, properties, methods
arguments      checks and converts arguments
lowering       turns the definition into a Topology, with the ordinary builder
eco            settings that only Heron's files have
java_values, storm_components, shell, kafka, hdfs, jdbc, redis, samples    stand-ins for Storm's and Java's own classes
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

#: The name of a Python file in the folder of the YAML file. It is imported before class names are looked up, so that it can
#: register stand-ins for Java classes.
CLASSES_FILE = "flux_classes.py"


def load(
    path: str | os.PathLike[str],
    *,
    filter_file: str | os.PathLike[str] | None = None,
    env_filter: bool = False,
) -> Topology:
    """Load the topology in a Flux file.

    ``filter_file`` is a file of properties, whose values replace ``${key}``. With ``env_filter``, the environment variable NAME
    replaces ``${ENV-NAME}``. The file's classes may be in modules in the file's own folder, because `load` adds this folder to
    the module path of this process and of those that it starts.

    Raises `TopologyNotFoundError` if there is no such file. Raises `InvalidTopologyError`, with file and line, for a mistake in
    the file.

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
