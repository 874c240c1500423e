"""What the pages tell a reader to type works: each block is run, or a marker says why not (CONTRIBUTING.md)."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tests.command_line import ROOT
from tests.docs.blocks import LANGUAGES, Block, blocks_of, pages
from tests.docs.commands import check_line, command_lines
from tests.docs.reader import Reader

PAGES = {str(page.relative_to(ROOT)): blocks_of(page) for page in pages()}
BLOCKS = [block for blocks in PAGES.values() for block in blocks]
_COMMAND = re.compile(r"^\s*(python|make|pip|\$) ", re.MULTILINE)


def test_every_block_has_a_language() -> None:
    """An indented block has none, and cannot be highlighted either."""
    assert not [str(block) for block in BLOCKS if block.language not in LANGUAGES]


def test_text_holds_no_commands() -> None:
    assert not [str(block) for block in BLOCKS if block.language == "text" and _COMMAND.search(block.text)]


def test_reasons_are_sentences() -> None:
    reasons = [block.treatment.not_run for block in BLOCKS if block.treatment.not_run]
    assert not [reason for reason in reasons if len(reason.split()) < 3]


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language in LANGUAGES[:3]], ids=str)
def test_block_is_plausible(block: Block) -> None:
    """Also of blocks that are not run: commands, options and files exist, and the syntax is right."""
    if block.language == "sh":
        for words in command_lines(block.text):
            check_line(words)
    elif block.language == "python":
        ast.parse(block.text)
    else:
        tomllib.loads(block.text)


def follow(blocks: list[Block], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the blocks as a reader in `folder`; an error names the block."""
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr("webbrowser.open", lambda address: True)
    modules = set(sys.modules)
    reader = Reader(folder)
    try:
        for block in blocks:
            try:
                reader.follow(block)
            except (Exception, SystemExit) as error:
                raise AssertionError(f"{block}: {type(error).__name__}: {error}") from error
    finally:
        for name in set(sys.modules) - modules:  # mine.py of another page has the same name
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow if any(block.treatment.slow for block in blocks) else [])
        for page, blocks in PAGES.items()
        if any(block.is_run for block in blocks)
    ],
)
def test_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follow([block for block in PAGES[page] if block.is_run], tmp_path, monkeypatch)
