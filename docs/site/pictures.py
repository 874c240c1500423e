"""Pictures of the site: a click shows one in full size, and several panels side by side scroll on a narrow screen.

An image gets its width and height, so that the text below it does not move while it loads, and is put into a link to
its file. The link is the box that scrolls; what it looks like is in static/site.css.
"""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from sphinx.util.images import get_image_size

WIDE = 1.8
"""A picture whose width is at least this many times its height is taken to have several panels."""
_IMAGE = re.compile(r'<img (?P<attributes>[^>]*\bsrc="(?P<address>[^"]+)"[^>]*?)\s*/?>')

Sizes = Mapping[str, tuple[int, int]]
"""Width and height in pixels, by the name of the file."""


def linked(body: str, sizes: Sizes) -> str:
    """The HTML of a page with each image of a known size in a link to its file; no image is in a link before."""

    def link(match: re.Match[str]) -> str:
        size = sizes.get(PurePosixPath(match["address"]).name)
        if size is None:
            return match[0]
        kind = "picture wide" if size[0] >= WIDE * size[1] else "picture"
        image = f'<img {match["attributes"]} width="{size[0]}" height="{size[1]}">'
        return f'<a class="{kind}" href="{match["address"]}" title="Show in full size">{image}</a>'

    return _IMAGE.sub(link, body)


def _link_pictures(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    if "body" in context:
        found = {name: get_image_size(app.srcdir / file) for file, name in app.builder.images.items()}
        context["body"] = linked(context["body"], {name: size for name, size in found.items() if size})


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", _link_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
