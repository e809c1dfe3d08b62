"""Java sources of Storm and Heron topologies, read without running them.

source       files parsed by tree-sitter; their classes, methods and fields, and what a name stands for
values       what an expression can be known to be
evaluation   follows methods and constructors, branch by branch; arithmetic and overloads are Java's
following    where it begins: every main, and whatever else makes a builder
library      what builders, declarers and configurations do; it fills drafts, config_keys names the keys
components   a spout's or bolt's class: what it overrides, emits, acks; ticks, threads
stock        Storm's and Heron's own classes, and what stands for them here
reading      topologies out of all of it; remarks are what is said of them
skeleton     the same topology in Python, with bodies to be written; stock_source, python_text write its parts
"""
