"""References in docstrings to names of other modules: `StateError` alone is enough, as it is for a reader of the code."""

from __future__ import annotations

from typing import Any

__all__ = ["setup"]


def setup(app: Any) -> dict[str, bool]:
    """Have Sphinx ask here for each name that it does not find in the module of the docstring."""
    app.connect("missing-reference", _by_last_part)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


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
