"""Small pieces of HTML; every text in them is escaped here, since it may come from a stranger's run."""

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from typing import Any
from zlib import compress

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def html(value: object) -> str:
    """A value as escaped text, without control characters and marks that change the direction of writing."""
    return escape(_CONTROL.sub("\ufffd", str(value)), quote=True)


def fold(summary: str, content: str, *, is_open: bool = False) -> str:
    """A part that can be opened and closed; both arguments are HTML."""
    return f"<details{' open' if is_open else ''}><summary>{summary}</summary><div>{content}</div></details>"


def button(label: str, action: str, **data: object) -> str:
    """A button that a script listens to by its data-action; the other arguments are its data."""
    attributes = "".join(f' data-{name}="{html(value)}"' for name, value in data.items())
    return f'<button type="button" data-action="{html(action)}"{attributes}>{html(label)}</button>'


def text_lines(lines: Iterable[str]) -> str:
    """Sentences of an explanation, one paragraph each."""
    return "".join(f"<p class='why'>{html(line)}</p>" for line in lines)


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, label: str) -> str:
    """A table; `label` describes it to those who do not see it."""
    top = "".join(f'<th scope="col">{html(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{html(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<table aria-label="{html(label)}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


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
