"""Settings of the documentation site (`make docs`).

Sphinx reads the whole repository, so that a page has the same place on the site as on a code-hosting site, and the
same links work. docs/index.md lists the pages; a source file that one links to is shown as a page, too.
"""

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT), str(ROOT / "models")]

from source_pages import SUFFIXES, linked_files  # noqa: E402

project = "vefl_sim"
author = "The vefl_sim authors"
copyright = author
release = version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

extensions = ["myst_parser", "docstrings", "navigation", "pictures", "source_pages"]
root_doc = "docs/index"
source_suffix = {".md": "markdown", **dict.fromkeys(SUFFIXES, "source file")}
_pages = ["*.md", "docs/*.md", "docs/howto/*.md", "examples/*.md", "experiments/*.md"]
include_patterns = [*_pages, *linked_files(ROOT, _pages)]
exclude_patterns = [".*", "runs", "docs/_build", "tests", "vefl_sim", "models", "fuzz", "dist"]

myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["myst.header"]  # a page may begin with a smaller heading below its title
highlight_language = "none"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "undoc-members": True, "exclude-members": "model_config"}
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
maximum_signature_line_length = 120
add_module_names = False
default_role = "code"

html_theme = "furo"
html_title = f"vefl_sim {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["root"]
html_copy_source = False
html_show_sphinx = False
html_use_index = False
html_domain_indices = False
html_theme_options = {"footer_icons": [], "navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
