"""Runs projects that were written for streamparse and pystorm, unmodified (A-5, B16-B20, C12-C19).

    project              loads a `stormspark.Topology` from a topology's file, using its config.json and its module path
    project_config       reads config.json: environments, options, and which options take precedence
    requirements         finds the file in the folder ``virtualenvs`` that requires a missing module
    clojure, early       topologies of streamparse 1 and 2, and what only components of these versions have
    topology, specs, groupings, streams, flux_dict       the DSL: a topology written as the body of a class
    lowering, other_languages                            turn a topology of the DSL into one of `stormspark.api`
    storm                streamparse's components: the same as pystorm's, but with a method ``spec``
    native               components of stormspark itself in a topology of streamparse
    component, bolt, spout, tuples, values, pipes        pystorm's components
    adapter, bolt_adapter, spout_adapter, task_log, shipping      run a pystorm component in a task, log, and pickle its class

``stormspark/compat/on_path/streamparse`` holds the packages ``streamparse`` and ``pystorm`` that users import. These packages
only re-export names, and have no code of their own.
"""

from stormspark.compat.streamparse.lowering import lower
from stormspark.compat.streamparse.project import load

__all__ = ["load", "lower"]
