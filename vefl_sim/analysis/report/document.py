"""A self-contained HTML document with the look of our reports; its policy forbids every request and foreign script.

Every text is escaped here, since it may come from a stranger's run.
"""

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any
from zlib import compress

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
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
    pictures = "blob:" if scripts else "data:"  # a chart on its way to a file, or drawn within the page
    return f"default-src 'none'; {own}; img-src {pictures}; base-uri 'none'; form-action 'none'"


def _section(section: Section) -> str:
    lead = f"<p class='lead'>{section.lead}</p>" if section.lead else ""
    heading = f'<h2 id="{section.name}-title">{html(section.title)}</h2>{lead}'
    return f'<section id="{section.name}" aria-labelledby="{section.name}-title">{heading}{section.body}</section>'


def _filled(skeleton: str, **parts: str) -> str:
    """Replace each {{name}}, in one pass, so that no part can contain the place of another."""
    return re.sub(r"{{(\w+)}}", lambda place: parts[place[1]], skeleton)


def html(value: object) -> str:
    """A value as escaped text, without control characters and marks that change the direction of writing."""
    return escape(_CONTROL.sub("\ufffd", str(value)), quote=True)


def fold(summary: str, content: str, *, is_open: bool = False) -> str:
    """A part that can be opened and closed; both arguments are HTML."""
    return f"<details{' open' if is_open else ''}><summary>{summary}</summary><div>{content}</div></details>"


def page_top(kind: str, name: object, sentence: str, cautions: Iterable[tuple[str, str, str]]) -> str:
    """What is on top of a page; `kind` is HTML, each caution a level, a title and a text."""
    items = "".join(f"<li class='{html(level)}'><b>{html(t)}.</b> {html(text)}</li>" for level, t, text in cautions)
    warnings = f"<ul class='warnings' id='warnings' aria-label='Warnings'>{items}</ul>" if items else ""
    return (
        f"<p class='eyebrow'>vefl_sim report {kind}</p><h1>{html(name)}</h1>"
        f"<p class='sentence' id='sentence'>{html(sentence)}</p>{warnings}"
    )


def table(head: Iterable[str], rows: Iterable[Sequence[str]], label: str) -> str:
    """A table that can be scrolled sideways; the cells are HTML, and `label` says what it is."""
    top = "".join(f'<th scope="col">{html(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    rows_of = f"<table class='points'><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div class='wide' tabindex='0' role='region' aria-label='{html(label)}'>{rows_of}</div>"


def pairs(rows: Iterable[tuple[str, object]]) -> str:
    """Names and values."""
    return f"<dl class='pairs'>{''.join(f'<div><dt>{html(n)}</dt><dd>{html(v)}</dd></div>' for n, v in rows)}</dl>"


def packed(data: Any) -> str:
    """Data for scripts: JSON, deflated and in base64, so that nothing in it can be taken for HTML."""
    text = json.dumps(finite(data), allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return b64encode(compress(text.encode("utf-8", "replace"))).decode()


def finite(data: Any) -> Any:
    """The same data with None for numbers that JSON does not have."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {str(name): finite(value) for name, value in data.items()}
    return [finite(value) for value in data] if isinstance(data, list | tuple) else data


def source_hash(text: str) -> str:
    """The hash by which a Content-Security-Policy allows an inline script or style."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
