"""Reads a legacy project and reports what runs here, what needs a change, and what could not be made out.

Reading runs no code of the project. Only `project.plan_each` does, which ``stormspark port --import`` calls.

project     reads a folder or a file, and returns the findings
findings    what was found, as plain data; each statement has the way it was checked
keys        what configuration keys do here
streamparse, heronpy    the readers of Python projects, by Python's ast
python_source, python_components, specs    the parts that both of these readers use
flux        the reader of Flux and ECO files, which are YAML
java        the reader of Java: a real parser, and a walk through the code that uses builders; it also writes skeletons
report      the findings as Markdown and JSON
"""
