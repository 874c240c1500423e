"""A self-contained HTML document with the look of our reports; its policy forbids every request and foreign script."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from vefl_sim.analysis.report.markup import html, packed, source_hash

_NO_SCRIPT = (
    '<noscript><p class="quiet">The curves and the map need scripts, which are part of this file; nothing is loaded.'
    "</p></noscript>"
)
_ASSETS = files("vefl_sim.analysis.report") / "assets"


@dataclass(frozen=True)
class Section:
    """A section of a page; `body` is HTML."""

    name: str
    title: str
    body: str
    lead: str = ""
    """A sentence under the title."""


@dataclass(frozen=True)
class Document:
    """A page: what is on top, its sections, the scripts it runs and the data they read."""

    title: str
    header: str
    sections: Sequence[Section]
    scripts: Sequence[str]
    """Names of files in assets/, in this order; they share one global scope."""
    data: Any
    styles: Sequence[str] = ("report.css",)
    """Names of files in assets/, one after the other."""

    def render(self) -> str:
        """The whole document as text."""
        style = "".join(map(asset, self.styles))
        scripts = [asset(name) for name in self.scripts]
        return _filled(
            asset("report.html"),
            policy=policy(style, scripts),
            title=html(self.title),
            style=style,
            header=self.header,
            noscript=_NO_SCRIPT if scripts else "",
            navigation="".join(f'<a href="#{section.name}">{html(section.title)}</a>' for section in self.sections),
            sections="\n".join(map(_section, self.sections)),
            data=packed(self.data),
            scripts="\n".join(f"<script>{script}</script>" for script in scripts),
        )


@cache
def asset(name: str) -> str:
    """The text of a file in assets/."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def policy(style: str, scripts: Sequence[str]) -> str:
    """The Content-Security-Policy: nothing is loaded, and only these scripts and this style are used."""
    hashes = " ".join(map(source_hash, scripts))
    own = f"script-src {hashes}; style-src {source_hash(style)}"
    pictures = "img-src blob:; " if scripts else ""  # a chart on its way to a file; only the page can make a blob
    return f"default-src 'none'; {own}; {pictures}base-uri 'none'; form-action 'none'"


def _section(section: Section) -> str:
    lead = f"<p class='lead'>{section.lead}</p>" if section.lead else ""
    heading = f'<h2 id="{section.name}-title">{html(section.title)}</h2>{lead}'
    return f'<section id="{section.name}" aria-labelledby="{section.name}-title">{heading}{section.body}</section>'


def _filled(skeleton: str, **parts: str) -> str:
    """Replace each {{name}} once, in one pass, so that no part can contain the place of another."""
    pieces = skeleton.split("{{")
    return pieces[0] + "".join(parts[name] + rest for name, rest in (piece.split("}}", 1) for piece in pieces[1:]))
