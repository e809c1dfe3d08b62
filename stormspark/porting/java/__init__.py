"""Reads Java sources of Storm and Heron topologies without running them.

source       parses files with tree-sitter: their classes, methods and fields, and the meaning of a name
values       what is known of the value of an expression
evaluation   follows methods and constructors, branch by branch, with arithmetic and overloads as in Java
following    where the walks begin: at every main, and at other code that makes a builder
library      what builders, declarers and configurations do; drafts has what code adds to them, config_keys their keys
components   the class of a spout or bolt: its methods, emits and acks; ticks and threads
stock        Storm's and Heron's own classes, and the classes that replace them here
reading      makes topologies of all this; remarks has statements about them
skeleton     writes the same topology in Python, without the bodies of methods; stock_source and python_text write parts of it
"""
