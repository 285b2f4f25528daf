"""Sphinx builds the documentation site with this: `make docs`.

The sources are the Markdown files that GitHub shows. The root of the repository is the source
folder, so that links to README.md, to manifests and to code lead to the same files as there.
"""

import os
import sys
from importlib.metadata import version as installed
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

project = "Moorage"
author = project_copyright = "the authors of Moorage"
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
autodoc_member_order = "bysource"  # what one learns first stands first
default_role = "code"
maximum_signature_line_length = 88
napoleon_use_ivar = True
smartquotes = False
nitpicky = True
# Words in the docstring of msgspec.field.
nitpick_ignore = [("py:class", "callable"), ("py:class", "optional")]

myst_heading_anchors = 6
myst_fence_as_directive = ["mermaid"]
myst_html_meta = {
    "description": "Kubernetes scheduling rules in Python, beside an unmodified kube-scheduler",
}
suppress_warnings = ["misc.highlighting_failure"]  # shortened examples: `...` is no JSON

html_theme = "furo"
html_title = f"Moorage {release}"
html_favicon = html_logo = "../gateway/inspector/static/icon.svg"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_search_scorer = "docs/site/scorer.js"
html_extra_path = ["site/root"]
html_copy_source = False
html_show_sphinx = False
html_theme_options: dict[str, bool | str] = {"navigation_with_keys": True}
if home := os.environ.get("MOORAGE_HOME", "").rstrip("/"):  # as in deploy/metadata.py
    html_theme_options |= {
        "source_edit_link": f"{home}/edit/main/{{filename}}",
        "source_view_link": f"{home}/blob/main/{{filename}}?plain=true",
    }
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
