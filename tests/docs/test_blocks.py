"""What the pages tell a reader to type works: each block is run, or a marker says why not (CONTRIBUTING.md)."""

import ast
import re
import shutil
import sys
import tomllib
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import ROOT
from tests.docs.blocks import LANGUAGES, Block, blocks_of, pages
from tests.docs.commands import check_line, command_lines, run_lines
from vefl_sim import load, load_sweep

PAGES = {str(page.relative_to(ROOT)): [*blocks_of(page)] for page in pages()}
BLOCKS = [block for blocks in PAGES.values() for block in blocks]
_LINKS = ("benchmarks", "docs", "examples", "models", "constraints.txt", "README.md")
_RUN = re.compile(r"runs/([\w.-]+?)-1a2b3c4d")
_COMMAND = re.compile(r"^\s*(python|make|pip|\$) ", re.MULTILINE)


def test_every_block_has_a_language_and_text_holds_no_commands() -> None:
    """An indented block has none, and cannot be highlighted either."""
    assert not [str(block) for block in BLOCKS if block.language not in LANGUAGES]
    assert not [str(block) for block in BLOCKS if block.language == "text" and _COMMAND.search(block.text)]


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


class Reader:
    """A reader who does what a page says, from its first block to its last, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "page"}
        shutil.copytree(ROOT / "experiments", folder / "experiments")
        for name in _LINKS:
            (folder / name).symlink_to(ROOT / name)

    def follow(self, block: Block) -> None:
        """Run the block, or check it, if it is TOML."""
        text = _RUN.sub(self._own_run, block.text)
        if block.file:
            self._write(block, text)
        if block.language == "sh":
            run_lines(text, self.folder, block.options, block.exit_code)
        elif block.language == "python":
            with chdir(self.folder):
                exec(compile(text, str(block), "exec"), self.names)
        else:
            self._load(block, text)

    def _own_run(self, named: re.Match[str]) -> str:
        runs = sorted((self.folder / "runs").glob(f"{named[1]}-*"), key=lambda path: path.stat().st_mtime)
        assert runs, f"no block before has made {named[0]}"
        return f"runs/{runs[-1].name}"

    def _write(self, block: Block, text: str) -> None:
        with (self.folder / block.file).open("a" if block.file.endswith(".py") else "w") as file:
            file.write(text)
        sys.modules.pop(Path(block.file).stem, None)

    def _load(self, block: Block, text: str) -> None:
        tables = tomllib.loads(text)
        (self.folder / "minimal.toml").write_text('[run]\nname = "fragment"\n')
        base, file = self.folder / (block.over or "minimal.toml"), self.folder / "fragment.toml"
        file.write_text(text if "base" in tables else f'base = "{base}"\n{text}')
        with chdir(self.folder):
            if tables.keys() & {"sweep", "compare", "figure"}:
                load_sweep(file)
            else:
                load(file)


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
        pytest.param(page, marks=pytest.mark.slow if any(block.slow for block in blocks) else [])
        for page, blocks in PAGES.items()
        if any(block.is_run for block in blocks)
    ],
)
def test_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follow([block for block in PAGES[page] if block.is_run], tmp_path, monkeypatch)
