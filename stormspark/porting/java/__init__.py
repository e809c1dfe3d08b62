"""Java sources of Storm and Heron topologies, read without running them.

source       files parsed by tree-sitter; their classes, methods and fields, and what a name stands for
values       what an expression can be known to be
evaluation   follows methods and constructors, branch by branch, and tells what it could not follow
drafts       what calls of builders, declarers and configurations add up to
components   a spout's or bolt's class: what it overrides, emits, acks; ticks, threads
stock        Storm's and Heron's own classes, and what stands for them here
reading      topologies out of all of it
skeleton     the same topology in Python, with bodies to be written
"""
