"""Runs topologies that were written for Petrel, unmodified.

Petrel describes a topology by a function ``create(builder)``. In Petrel, each component is a child process: it imports the
component's script and calls ``run()`` there. Here ``run()`` makes the component too, but the component lives in its worker.

storm       the functions and classes of ``petrel.storm``: emit, ack, Tuple, Spout, Bolt, BasicBolt
emitter     the classes that users subclass
builder     Petrel's ``TopologyBuilder``, and what becomes of its declarations
tasks       runs a component in a task
project     loads a topology from its file, with ``topology.yaml`` beside it
mock        Petrel's helper for users' own tests

``stormspark/compat/on_path/petrel`` has the package ``petrel`` that users import.
"""

from stormspark.compat.petrel.project import load

__all__ = ["load"]
