"""The lists of docs/index.md are the site's navigation: a section is a caption, an item with a link is a page."""

import re
from typing import Any

_ITEM = re.compile(r"^- \[([^\]]+)\]\(([^)#]+)\)", re.MULTILINE)


def toctrees(index: str) -> str:
    """A hidden toctree for each `## Section` of the index page that lists pages."""
    _, *sections = re.split(r"^## ", index, flags=re.MULTILINE)
    return "\n".join(_toctree(section.split("\n", 1)[0], _ITEM.findall(section)) for section in sections)


def _toctree(caption: str, pages: list[tuple[str, str]]) -> str:
    entries = [f"{title} <{page}>" for title, page in pages]
    return "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *entries, "```", ""]) if pages else ""


def _add_toctrees(app: Any, page: str, source: list[str]) -> None:
    if page == app.config.root_doc:
        source[0] += "\n" + toctrees(source[0])


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", _add_toctrees)
    return {"parallel_read_safe": True}
