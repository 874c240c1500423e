"""A reader who does what a page says, from its first block to its last, in a folder of their own."""

import re
import shutil
import sys
import tomllib
from contextlib import chdir
from pathlib import Path
from typing import Any

from tests.command_line import ROOT
from tests.docs.blocks import Block
from tests.docs.commands import run_lines
from vefl_sim import load, load_sweep

_LINKS = ("benchmarks", "docs", "examples", "models", "constraints.txt", "README.md")
_RUN = re.compile(r"runs/([\w.-]+?)-1a2b3c4d")
_MINIMAL = '[run]\nname = "fragment"\n'


class Reader:
    """Runs blocks of a page one after the other; files and Python names stay."""

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
            run_lines(text, self.folder, block.treatment.options, block.treatment.exit_code)
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
        file = self.folder / block.file
        before = file.read_text() if file.exists() and file.suffix == ".py" else ""
        file.write_text(before + text)
        sys.modules.pop(file.stem, None)

    def _load(self, block: Block, text: str) -> None:
        tables = tomllib.loads(text)
        base = self.folder / "minimal.toml"
        base.write_text(_MINIMAL)
        if block.treatment.over:
            base = self.folder / block.treatment.over
        file = self.folder / "fragment.toml"
        file.write_text(text if "base" in tables else f'base = "{base}"\n{text}')
        with chdir(self.folder):
            if tables.keys() & {"sweep", "compare", "figure"}:
                load_sweep(file)
            else:
                load(file)
