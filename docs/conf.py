"""Sphinx builds the documentation site with this: `make docs`.

The sources are the Markdown files that GitHub shows. The root of the repository is the source
folder, so that links to README.md, to manifests and to code lead to the same files as there.
"""

import sys
from importlib.metadata import version as installed
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

project = "Moorage"
author = "the authors of Moorage"
version = release = installed("moorage")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "docs.site.contents",
    "docs.site.diagrams",
    "docs.site.api",
]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md"]
exclude_patterns = [
    ".*",
    "bench",
    "cli",
    "deploy",
    "gateway",
    "protos",
    "sandbox",
    "sdk",
    "services",
    "tests",
]
add_module_names = False
toc_object_entries_show_parents = "hide"
default_role = "code"
maximum_signature_line_length = 88
napoleon_use_ivar = True
smartquotes = False
nitpicky = True

myst_heading_anchors = 6
myst_fence_as_directive = ["mermaid"]
suppress_warnings = ["misc.highlighting_failure"]  # shortened examples: `...` is no JSON

html_theme = "furo"
html_title = f"Moorage {release}"
html_favicon = html_logo = "../gateway/inspector/static/icon.svg"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_extra_path = ["site/root"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
