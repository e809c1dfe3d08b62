"""Runs projects that were written for streamparse and pystorm, unmodified (A-5, B16-B20, C12-C19).

    project              loads a topology's file, with its config.json and its paths, as a `stormspark.Topology`
    project_config       config.json: environments, options, and which options take precedence
    requirements         the file in virtualenvs that requires a missing module
    topology, specs, groupings, streams, flux_dict       the DSL: a topology written as the body of a class
    lowering, other_languages                            from the DSL to `stormspark.api`
    storm                streamparse's components: pystorm's, with ``spec``
    native               components of stormspark itself in a topology of streamparse
    component, bolt, spout, tuples, values, pipes        pystorm's components
    adapter, bolt_adapter, spout_adapter, task_log, shipping      the surroundings of pystorm's component in a task

``stormspark/compat/on_path/streamparse`` holds the packages ``streamparse`` and ``pystorm`` that users import. They have only
names and no code.
"""

from stormspark.compat.streamparse.lowering import lower
from stormspark.compat.streamparse.project import load

__all__ = ["load", "lower"]
