"""What Sphinx does not know about our docstrings: code is an indented block, and `StateError` alone names a class elsewhere."""

from __future__ import annotations

import builtins
from typing import Any

__all__ = ["setup", "with_code_blocks"]


def setup(app: Any) -> dict[str, bool]:
    """Have Sphinx ask here about each docstring, and for each name that it does not find in the docstring's module."""
    app.connect("autodoc-process-docstring", _mark_code)
    app.connect("doctree-read", _leave_builtins)
    app.connect("missing-reference", _by_last_part)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _mark_code(_app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    lines[:] = with_code_blocks(lines)


def with_code_blocks(lines: list[str]) -> list[str]:
    """Return the lines of a docstring with a mark before each indented block: reStructuredText takes it for a quotation.

    >>> with_code_blocks(["One group:", "", "    with group:", "        emit()", "", "Then"])
    ['One group:', '', '::', '', '    with group:', '        emit()', '', 'Then']
    """
    marked: list[str] = []
    before = ""
    for line in lines:
        follows_blank = not marked or not marked[-1].strip()
        if line.strip() and follows_blank and _indent(line) >= _indent(before) + 4 and _is_prose(before):
            marked += [" " * _indent(before) + "::", ""]
        if line.strip():
            before = line
        marked.append(line)
    return marked


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_prose(line: str) -> bool:
    # After a mark, a list or an example, an indented line has its meaning already.
    return not line.endswith("::") and not line.lstrip().startswith(("- ", ".. ", ">>> ", "... "))


def _leave_builtins(_app: Any, doctree: Any) -> None:
    # Sphinx would look for any attribute of that name, such as the `tuple` of a `BoltAckInfo`.
    from sphinx.addnodes import pending_xref
    from sphinx.util.nodes import find_pending_xref_condition

    for node in list(doctree.findall(pending_xref)):
        if node.get("refdomain") == "py" and hasattr(builtins, node["reftarget"]):
            # A type in a signature has two texts: with its module, and, for what is found, without.
            found = find_pending_xref_condition(node, "resolved")
            node.replace_self(found.children if found is not None else node.children)


def _by_last_part(_app: Any, env: Any, node: Any, shown: Any) -> Any:
    """Return a link to the only object that ends with the name, or None: then the name is shown as code."""
    if node.get("refdomain") != "py" or node.get("reftype") != "obj":
        return None
    wanted = node["reftarget"].removesuffix("()")
    domain = env.domains["py"]
    found = [name for name in domain.objects if name == wanted or name.endswith(f".{wanted}")]
    # A method's name alone may belong to many classes; a class is meant where there is just one of that name.
    classes = [name for name in found if domain.objects[name].objtype in ("class", "exception", "function")]
    names = classes if len(classes) == 1 else found
    if len(names) != 1:
        return None
    from sphinx.util.nodes import make_refnode

    entry = domain.objects[names[0]]
    return make_refnode(env.app.builder, node["refdoc"], entry.docname, entry.node_id, shown, names[0])
