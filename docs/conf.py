"""How Sphinx builds the documentation; run it with ``make docs``."""

import re
from importlib.metadata import version as version_of
from typing import Any

project = "exchangeable"
author = "The exchangeable developers"
copyright = "the exchangeable developers"
release = version = version_of("exchangeable")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_templates", "auto_examples/*.md5", "auto_examples/*.ipynb"]
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath", "amsmath"]
numpydoc_show_class_members = False
templates_path = ["_templates"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "/plot_",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 60,
}

html_theme = "pydata_sphinx_theme"
html_title = "exchangeable"
html_static_path: list[str] = []
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
}


def escape_signs(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep |S| and n_features_in_ in docstrings from being read as reStructuredText."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            line = re.sub(r"\|(S_[^|]*)\|", r"\\|\1\\|", line)
            lines[number] = re.sub(r"\((\w+)_,\)", r"(\1\\_,)", line)


def skip_inherited(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool:
    """Leave out what classes inherit from scikit-learn, which documents it."""
    module = getattr(obj, "__module__", None) or ""
    return skip or module.startswith("sklearn") or "_request" in name


def setup(app: Any) -> None:
    """Register the hooks; the first is to run after numpydoc's."""
    app.connect("autodoc-process-docstring", escape_signs, priority=900)
    app.connect("autodoc-skip-member", skip_inherited)
