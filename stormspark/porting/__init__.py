"""Reads a legacy project. Reports what runs on stormspark, what needs a change, and what could not be made out.

Reading runs no code of the project. Only `project.plan_each` runs such code, and only ``stormspark port --import`` calls it.

project     reads a folder or a file, and returns the findings
findings    the findings as plain data; each statement says how it was checked
keys        the effect of configuration keys in stormspark
streamparse, heronpy, petrel    read Python projects, with Python's ast
python_source, python_components, python_waits, specs    parts that the readers of Python projects share
python2, drafts_in_python3    what only works in Python 2, and its drafts in Python 3
multilang   finds the scripts of children
flux        reads Flux and ECO files, which are YAML
java        reads Java: parses the files, and follows the code that uses builders; also writes skeletons
report      writes the findings as Markdown and JSON
"""
