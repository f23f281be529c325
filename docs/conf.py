"""How Sphinx builds the documents: `tox -e docs`."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "cdcavro"
author = "the developers of cdcavro"
version = release = installed_version("cdcavro")

extensions = ["myst_parser", "sphinx.ext.autodoc", "reference.extension"]
exclude_patterns = ["_ext", "_extra", "_static"]
myst_enable_extensions = ["deflist", "fieldlist"]
myst_heading_anchors = 4
smartquotes_action = "qe"  # quotes and ellipses; `--out` keeps its hyphens

# Every name that is written as a reference is one that there is: see `_ext/reference/names.py`.
nitpicky = True

# The signatures are wanted, and Spark is not needed to read them.
autodoc_mock_imports = ["pandas", "py4j", "pyarrow", "pyspark"]
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"cdcavro {version}"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["cdcavro.css"]
html_js_files = ["copy.js"]
# The page for addresses that lead nowhere, which servers look for at the root.
html_extra_path = ["_extra"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
# Their colours stand out from the ground of a block.
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
