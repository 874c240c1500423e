"""Source files that Markdown pages link to are shown as pages, so that the links lead somewhere on the site, too."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.parsers import Parser

SUFFIXES = {".py": "python", ".toml": "toml", ".cff": "yaml"}
"""Suffix -> language of the highlighting; files of other kinds are offered as downloads."""
_LINK = re.compile(r"\]\(([^)#:\s]+)\)")


def linked_files(root: Path, patterns: Iterable[str]) -> set[str]:
    """Source files that the pages of these patterns link to, relative to `root`."""
    pages = [page for pattern in patterns for page in root.glob(pattern)]
    files = {file for page in pages for file in _links(page) if file.suffix in SUFFIXES and file.is_file()}
    return {str(file.relative_to(root)) for file in files if not file.with_suffix(".md").exists()}


def _links(page: Path) -> Iterator[Path]:
    return ((page.parent / target).resolve() for target in _LINK.findall(page.read_text()))


class SourceFile(Parser):
    """Parse a source file into a page: its path as the title, and its text as one block."""

    supported = ("source file",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Called by Sphinx."""
        env = document.settings.env
        file = str(env.doc2path(env.docname, base=False))
        block = nodes.literal_block(inputstring, inputstring, language=SUFFIXES[Path(file).suffix])
        document += nodes.section("", nodes.title(file, file), block, ids=[nodes.make_id(file)])
        env.metadata[env.docname]["orphan"] = True  # not in the navigation


def _lead_to_readmes(app: Any, document: nodes.document) -> None:
    """Links to a folder lead to the README.md in it, or else above it."""
    here = Path(app.env.doc2path(app.env.docname)).parent
    for link in document.findall(pending_xref):
        if link["reftype"] == "myst" and (folder := (here / link["reftarget"]).resolve()).is_dir():
            page = next(above for above in (folder, *folder.parents) if (above / "README.md").exists()) / "README"
            link.attributes |= {
                "refdomain": "doc",
                "reftarget": page.relative_to(app.srcdir).as_posix(),
                "reftargetid": None,
            }


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_source_parser(SourceFile)
    app.connect("doctree-read", _lead_to_readmes)
    return {"parallel_read_safe": True}
