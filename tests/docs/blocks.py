"""The code blocks of a Markdown page, and the comments before them that say how they are tested (CONTRIBUTING.md)."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from tests.command_line import ROOT

LANGUAGES = ("sh", "python", "toml", "text")
_MARKER = re.compile(r"<!-- (run|not run): (.+?) -->\s*", re.DOTALL)
_HIDDEN = re.compile(r"<!-- hidden (\w+)(?:: ([^\n]+))?\n(.+?)-->\s*", re.DOTALL)
_NAMED = re.compile(r"# ([\w.-]+\.(?:py|toml))\n")


@dataclass(frozen=True)
class Block:
    """One code block of a page, with what its marker says; without one, it is run as it is."""

    page: Path
    line: int
    language: str
    text: str
    not_run: str = ""  # the reason
    slow: bool = False  # the page takes more than ten seconds
    options: tuple[str, ...] = ()  # added to every command of vefl_sim that knows them
    exit_code: int = 0  # of every command
    over: str = ""  # TOML file that is the base of a fragment

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_run(self) -> bool:
        """Whether one of the tests runs it."""
        return self.language in LANGUAGES[:3] and not self.not_run

    @cached_property
    def file(self) -> str:
        """Name of the file that the reader is to write it to, from a comment in its first line; "" if it has none."""
        found = _NAMED.match(self.text)
        return found[1] if found else ""


def pages() -> list[Path]:
    """The pages whose blocks are tested."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks_of(page: Path) -> Iterator[Block]:
    """All blocks of a page in their order, hidden ones too; a marker without a block is an error."""
    marked: dict[str, Any] = {}
    for token in MarkdownIt().parse(page.read_text()):
        line = token.map[0] + 1 if token.map else 0
        if token.type in ("fence", "code_block"):
            yield Block(page, line, token.info.strip(), token.content, **marked)
            marked = {}
            continue
        if marked:
            raise ValueError(f"{page}:{line}: the marker before this line has no block after it.")
        if hidden := token.type == "html_block" and _HIDDEN.fullmatch(token.content):
            yield Block(page, line, hidden[1], hidden[3], **_treatment(hidden[2] or ""))
        elif token.type == "html_block" and re.match(r"<!-- *(run|not|hidden)\b", token.content):
            marker = _MARKER.fullmatch(token.content)
            if not marker:
                raise ValueError(f"{page}:{line}: {token.content!r} is no marker as described in CONTRIBUTING.md.")
            marked = {"not_run": marker[2]} if marker[1] == "not run" else _treatment(marker[2])


def _treatment(words: str) -> dict[str, Any]:
    treatment: dict[str, Any] = {}
    for item in filter(None, map(str.strip, words.split(";"))):
        match shlex.split(item):
            case ["slow"]:
                treatment["slow"] = True
            case ["with", *options] if options:
                treatment["options"] = tuple(options)
            case ["exit", code]:
                treatment["exit_code"] = int(code)
            case ["over", file]:
                treatment["over"] = file
            case _:
                raise ValueError(f"{item!r} is not one of slow, with OPTIONS, exit CODE, over FILE.")
    return treatment
