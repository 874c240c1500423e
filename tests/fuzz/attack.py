"""An attack: attempts to make the program fail, each of which is a folder of small files made from one random seed."""

from pathlib import Path
from random import Random
from typing import Protocol


class Broken(Exception):
    """The program did what it must never do: a traceback, a broken law, another exit code than 0, 1, 2 or 130."""


class Attack(Protocol):
    """One way of attacking the program."""

    name: str
    """Its row of the table and its folder in the corpus."""
    goal: int
    """Attempts before a release (docs/resume.md)."""
    limit_s: float
    """An attempt that takes longer than this is a hang."""

    def make(self, random: Random, folder: Path) -> None:
        """Write the files of one attempt into an empty folder."""

    def check(self, folder: Path) -> int | None:
        """Let the program work on these files, and raise Broken if it did what it must never do.

        Returns how many attempts they are, if not one. Any exception but Broken that comes from here is a traceback of
        the program, and so a failure, too.
        """
