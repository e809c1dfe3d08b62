"""What Sphinx has to know about the site (``sphinx-build`` reads this file as Python)."""

from __future__ import annotations

import stormspark

project = "stormspark"
author = "The stormspark developers"
version = release = stormspark.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "tools.site.breaks",
    "tools.site.docstrings",
]
exclude_patterns = ["_build"]
# An exception to the rule that a document is Markdown: pages from docstrings, which are written at each build.
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# --- documents: as GitHub shows them ---------------------------------------------------------------------------------
myst_heading_anchors = 6
# Python where it is Python, and no colours where it is not.
highlight_language = "default"

# --- docstrings: `Name` is a reference where there is such a name, and code where there is none -----------------------
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True}
autodoc_preserve_defaults = True
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
# In the list beside the page, a method stands below its class.
toc_object_entries_show_parents = "hide"

# --- how it looks: nothing is loaded from another host ----------------------------------------------------------------
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_title = f"stormspark {release}"
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False
html_show_copyright = False
html_last_updated_fmt = None
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
