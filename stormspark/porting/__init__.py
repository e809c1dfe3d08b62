"""Reads a legacy project without running it, and says what runs here, what needs a change, and what it could not make out.

project     a folder or a file -> findings
findings    what was found, as plain data; each statement says how it was checked
keys        what configuration keys do here
streamparse, heronpy, flux    by Python's ast, or as YAML
java        by a real parser; follows what the code does with builders, without running it
skeleton    a Python topology wired as the Java one
report      Markdown and JSON
"""
