"""Docstrings for the API page: plain text with `code`, so all else that reStructuredText takes for markup is escaped.

A line `Names: …` of docs/api.md is replaced by what autodoc finds out about these public names.
"""

import re
from types import ModuleType
from typing import Any

from sphinx.pycode import parser
from sphinx.util import typing as annotations

_CODE = re.compile(r"(`+[^`]+`+)")
_NAMES = re.compile(r"^Names: (.+)$", re.MULTILINE)

_ARRAY = re.compile(
    r"~?numpy\.ndarray\[~?tuple\[~?typing\.Any, \.\.\.\], ~?numpy\.dtype\[~?(?:numpy|typing)\.(\w+)\]\]"
)
_ARRAYS = {"float64": "Floats", "int64": "Ints", "bool": "Bools", "Any": "NDArray"}


def with_short_arrays(text: str) -> str:
    """A signature or annotation with the names that the sources have for arrays."""
    return _ARRAY.sub(lambda array: _ARRAYS.get(array[1], f"NDArray[{array[1]}]"), text)


def escaped(line: str) -> str:
    """A line of a docstring, with `*`, `|` and `_` outside of code as they are."""
    parts = _CODE.split(line)
    return "".join(part if number % 2 else re.sub(r"([*|_\\])", r"\\\1", part) for number, part in enumerate(parts))


def _escape(app: Any, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    lines[:] = [escaped(line) for line in lines]


def _shorten(
    app: Any, what: str, name: str, thing: Any, options: object, signature: str | None, result: str | None
) -> tuple[str, str] | None:
    """Protocols are not called, and an experiment is read from a file, so their signatures are left out."""
    if getattr(thing, "_is_protocol", False) or hasattr(thing, "model_fields"):
        return "", ""
    if signature is None:
        return None
    return with_short_arrays(signature.replace("<factory>", "...")), with_short_arrays(result or "")


def _directives(names: re.Match[str]) -> str:
    import vefl_sim

    def directive(name: str) -> str:
        thing = getattr(vefl_sim, name)
        if isinstance(thing, ModuleType):
            return f".. automodule:: {thing.__name__}\n"
        return f".. auto{'class' if isinstance(thing, type) else 'function'}:: vefl_sim.{name}\n"

    return "\n".join(["```{eval-rst}", *map(directive, re.findall(r"`(\w+)`", names[1])), "```"])


def _add_directives(app: Any, page: str, source: list[str]) -> None:
    if page == "docs/api":
        source[0] = _NAMES.sub(_directives, source[0])


def _public(app: Any, env: Any, node: Any, content: Any) -> Any:
    """A type in a signature leads to its public name, wherever it is defined."""
    name = node["reftarget"].rpartition(".")[2]
    if node.get("refdomain") != "py" or f"vefl_sim.{name}" not in env.domains["py"].objects:
        return None
    return env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, "obj", f"vefl_sim.{name}", node, content)


_stringify = annotations.stringify_annotation
annotations.stringify_annotation = lambda *values, **options: with_short_arrays(_stringify(*values, **options))
"""For attributes; it is replaced before autodoc imports it."""


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    parser.comment_re = re.compile(r"^\s*#:? (?!noqa|type:)(.*)\r?\n?$")  # comments of attributes need no `#:`
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("source-read", _add_directives)
    app.connect("missing-reference", _public)
    app.connect("autodoc-process-signature", _shorten)
    app.connect("autodoc-process-docstring", _escape)
    return {"parallel_read_safe": True}
