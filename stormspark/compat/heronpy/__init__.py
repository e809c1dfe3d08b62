"""Runs heronpy's topologies unmodified: its classes are lowered to `stormspark.api` (A40-A46, B21-B26, C20-C22, C42-C45).

    project            stormspark run FILE[:NAME]: what a file of heronpy's submits or defines
    topology           Topology with its metaclass, and TopologyBuilder
    component_spec     what ``spec()`` gives, and the streams of one
    components         what spouts and bolts inherit
    window_bolt        the two windowed bolts
    stream, custom_grouping, task_hook, metrics, global_metrics, state, serializer, tuples, constants      what else users import
    configuration      values that are texts where they are submitted, and typed where they are read
    lowering           specs to `stormspark.api`'s declarations
    groupings          Heron's groupings as ours
    delegates          what a component emits, acks and logs through, in its task
    tasks              the spout and the bolt that the engine sees; the user's own is inside
    contexts           what a task may know
    hooks              the user's task hooks, told by one of ours

Under ``stormspark/compat/on_path/heronpy`` are packages by the original's names that hand these out.
"""
