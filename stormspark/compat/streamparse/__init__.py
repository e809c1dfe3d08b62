"""Runs projects that were written for streamparse and pystorm, unmodified (A-5, B16-B20, C12-C19).

    project              a topology's file -> `stormspark.Topology`; its config.json, its paths
    project_config       config.json: environments, options, what takes precedence
    requirements         the file in virtualenvs that requires a missing module
    topology, specs, groupings, streams, flux_dict       the DSL, which reads the body of a class
    lowering, other_languages                            the DSL -> `stormspark.api`
    storm                streamparse's components: pystorm's, with ``spec``
    native               components of stormspark's own among them
    component, bolt, spout, tuples, values, pipes        pystorm's components
    adapter, bolt_adapter, spout_adapter, task_log, shipping      what such a component lives in, inside of a task

``stormspark/compat/on_path/streamparse`` holds the packages ``streamparse`` and ``pystorm`` that
users import: names, and no code.
"""

from stormspark.compat.streamparse.lowering import lower
from stormspark.compat.streamparse.project import load

__all__ = ["load", "lower"]
