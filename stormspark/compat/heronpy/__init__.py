"""Runs heronpy's topologies unmodified: turns them into objects of `stormspark.api` (A40-A46, B21-B26, C20-C22, C42-C45).

    project            the topology that a file submits or defines, for stormspark run FILE[:NAME]
    topology           Topology with its metaclass, and TopologyBuilder
    component_spec     the result of ``spec()``, and its streams
    components         the base classes of spouts and bolts
    window_bolt        the two windowed bolts
    stream, custom_grouping, task_hook, metrics, global_metrics, state, serializer, tuples, constants      other modules for users
    configuration      settings: strings when they are submitted, numbers and booleans when they are read
    lowering           turns specs into declarations of `stormspark.api`
    groupings          turns Heron's groupings into those of stormspark
    delegates          objects that emit, ack and log for a component in a task
    tasks              the spout and the bolt that the engine runs; each calls the user's own
    contexts           the contexts from which tasks and custom groupings learn about the topology
    hooks              one task hook of stormspark, which calls all of the user's hooks

The packages in ``stormspark/compat/on_path/heronpy`` have heronpy's own names, and import from these modules.
"""
