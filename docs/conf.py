"""Settings of the documentation: `python -m sphinx -W --keep-going -b html docs docs/_build/html`."""

import os
import sys
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent / "_ext")]

import jaxface  # noqa: E402 - found through the line above

project = "jaxface"
author = "The jaxface authors"
project_copyright = "the jaxface authors, Apache License 2.0"
version = release = jaxface.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "rooms",
    "plain_docstrings",
    "mathml",
]
exclude_patterns = ["_build", "images"]
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
smartquotes = False  # W'x and --config mean themselves
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "jaxface"
html_math_renderer = "mathml"  # no script, so the pages read the same without a network
html_static_path = ["_static"]
html_css_files = ["jaxface.css"]
html_copy_source = False
html_show_sourcelink = False
pygments_style = "tango"
pygments_dark_style = "native"

# Signatures name types by their last name, and two rooms may each have a Rows or a Moments.
suppress_warnings = ["ref.python"]
