"""How the site is built: Sphinx over the repository's own pages. `make docs` runs it, and warnings are errors.

The root of the sources is the repository, so links lead to the same places on the site and in the repository.
"""

import sys
from pathlib import Path

SITE = Path(__file__).parent
sys.path.insert(0, str(SITE))

from opwright.version import VERSION  # noqa: E402  (after the path of the extensions)

project = "opwright"
author = "the authors of opwright"
copyright = author
version = release = VERSION

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "extensions.contents",
    "extensions.commands",
    "extensions.refusals",
    "extensions.names",
    "extensions.offline",
]

root_doc = "docs/README"
include_patterns = [
    "README.md",
    "README.zh.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    "docs/**/*.md",
    "docs/*.md",
    "docs/gallery/*.rst",
]
exclude_patterns = [
    "docs/gallery/sg_execution_times.rst",
    "docs/decisions/template.md",
    ".venv",
    "build",
    "**/.pytest_cache",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
templates_path: list[str] = []

myst_heading_anchors = 3
nitpicky = False  # docstrings name what is in torch, whose pages are not here
default_role = "code"
highlight_language = "none"
suppress_warnings = ["misc.highlighting_failure"]  # pieces of code with "…" in them

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say what is taken and given; types are in the signatures
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "examples_dirs": "examples/gallery",
    "gallery_dirs": "docs/gallery",  # written by the build
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "copyfile_regex": r".*\.rst",
    "min_reported_time": 1000,
    "matplotlib_animations": False,
    "show_memory": False,
    "write_computation_times": False,
    "nested_sections": False,
}

html_theme = "furo"
html_title = "opwright"
html_baseurl = ""
html_copy_source = False
html_show_sphinx = False
html_static_path = ["style"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
pygments_style = "tango"
pygments_dark_style = "github-dark"
copybutton_prompt_text = r">>> |\$ "
copybutton_prompt_is_regexp = True
