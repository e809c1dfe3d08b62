"""Runs heronpy's topologies unmodified: turns them into objects of `stormspark.api` (A40-A46, B21-B26, C20-C22, C42-C45).

    project            the topology that a file submits or defines, for stormspark run FILE[:NAME]
    topology           Topology with its metaclass, and TopologyBuilder
    component_spec     the result of ``spec()``, and its streams
    components         the base classes of spouts and bolts
    window_bolt        the two windowed bolts
    stream, custom_grouping, task_hook, metrics, global_metrics, state, serializer, tuples, constants      other modules for users
    configuration      values that are strings when they are submitted, and typed when they are read
    lowering           from specs to declarations of `stormspark.api`
    groupings          from Heron's groupings to those of stormspark
    delegates          in a task: emits, acks and logs for a component
    tasks              the spout and the bolt that the engine runs, with the user's own inside
    contexts           the contexts from which tasks and custom groupings learn about the topology
    hooks              calls the user's task hooks from one hook of stormspark

The packages in ``stormspark/compat/on_path/heronpy`` have heronpy's own names, and import from these modules.
"""
