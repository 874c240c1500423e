"""The command line program in this process, and what every answer of it must be like."""

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.command_line import call

MOST_CHARACTERS = 100_000
"""More than this on stderr is a flood that nobody reads."""
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x9b]")
"""Characters with which a foreign text could move the cursor or colour the terminal; a tab is harmless."""


class Broken(Exception):
    """The program did what it must never do: a traceback, a broken law, another exit code than 0, 1, 2 or 130."""


class Answer(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    errors: str

    @property
    def sentences(self) -> list[str]:
        """The sentences that say what is wrong."""
        return [line.removeprefix("error: ") for line in self.errors.splitlines() if line.startswith("error: ")]


def command(*arguments: str, codes: Sequence[int] = (0, 1, 2)) -> Answer:
    """Run a command in this process; any exception but SystemExit passes, which is the traceback a user would see."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # a user sees warnings, and is not stopped by them …
        warnings.simplefilter("ignore", ResourceWarning)  # … except those that Python shows to nobody
        done = call(*arguments, cwd=Path.cwd())
    answer = Answer(done.returncode, done.stdout, done.stderr)
    require_plain(answer, codes)
    return answer


def require_plain(answer: Answer, codes: Sequence[int] = (0, 1, 2)) -> None:
    """Raise Broken unless the exit code is one of these, and a bad one has a sentence and no traceback."""
    if answer.code not in codes:
        raise Broken(f"exit code {answer.code}: {answer.errors[-500:]}")
    if "Traceback" in answer.errors:
        raise Broken(f"a traceback: {answer.errors[-1500:]}")
    if answer.code == 2 and not (answer.sentences or "Usage:" in answer.errors):
        raise Broken(f"exit code 2 without a sentence: {answer.errors[-500:]!r}")
    if len(answer.errors) > MOST_CHARACTERS:
        raise Broken(f"{len(answer.errors):,} characters of errors, which begin with {answer.errors[:200]!r}")
    if found := _UNPRINTABLE.search(answer.errors):
        around = answer.errors[max(0, found.start() - 80) : found.end() + 80]
        raise Broken(f"an error with a control character: {around!r}")
    for line in answer.errors.splitlines():
        if answer.code == 2 and "Usage:" not in answer.errors and not line.startswith(("error: ", "# ", "note: ")):
            raise Broken(f"a line that is neither a sentence nor a note: {line[:300]!r}")
