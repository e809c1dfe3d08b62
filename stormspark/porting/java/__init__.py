"""Reads Java sources of Storm and Heron topologies without running them.

source       parses files with tree-sitter; finds classes, methods and fields, and the meaning of a name
values       describes what is known of the value of an expression
evaluation   follows methods and constructors, branch by branch; arithmetic and overloads of methods are in modules of their own
following    says where evaluation begins: at every main, and at other code that makes a builder
library      knows the methods of builders, declarers and configurations; drafts stores what these methods add;
             config_keys has the keys
components   reads the class of a spout or bolt: its methods, emits, acks, ticks and threads
stock        lists Storm's and Heron's own classes, and stormspark's classes that replace them
reading      makes topologies from the drafts; remarks adds statements about them
skeleton     writes the topology in Python, without the bodies of methods; stock_source and python_text write parts of it
"""
