"""The exceptions of this package, as a tree.

VeflError                     everything this package raises on purpose
├── BadInput                  the user can fix it: exit code 2, one sentence per problem
│   ├── ExperimentError       the TOML file, a --set option, or a part named "module:name"
│   ├── RunNotFound           a run directory that does not exist or cannot be read
│   ├── RunLocked             a run that another process is working on
│   └── NotResumable          a run that this version cannot resume, or whose checkpoints are damaged
├── RunFailed                 an error during the run: exit code 1
│   ├── LedgerMismatch        bits, joules or money that do not add up
│   ├── AuditFailed           a plan or a slot that violates one of C1–C12
│   └── CannotWrite           the disk is full or write-protected; files written before are kept
└── RunInterrupted            the user stopped the run; it can be resumed: exit code 130

VeflWarning                   everything this package warns of with Python's `warnings`
└── FinishedRun               `simulate` returned a run that was done, so that its watchers were not called
"""

import warnings
from collections.abc import Sequence

_MAX_CHARACTERS = 2000  # of a sentence; a value or a path in it may be of any length


class VeflError(Exception):
    """Base of all errors raised on purpose."""


MAX_PROBLEMS = 20
"""The problems of one input that are reported; of a file that is something else altogether, there may be thousands."""


class BadInput(VeflError):
    """Wrong input that the user can correct; `problems` holds one sentence per problem, at most the first twenty."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        if (more := len(self.problems) - MAX_PROBLEMS) > 1:
            self.problems = (*self.problems[:MAX_PROBLEMS], f"There are {more} more problems.")
        # SimPy rebuilds exceptions from their args, so args must equal the arguments of __init__.
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(self.problems)


class ExperimentError(BadInput):
    """An experiment that cannot be run as written."""


class RunNotFound(BadInput):
    """A run directory that does not exist or holds no tables."""


class RunLocked(BadInput):
    """A run that another process is working on."""


class NotResumable(BadInput):
    """A run that cannot be resumed from its last checkpoint."""


class RunFailed(VeflError):
    """An error during a run, which the user cannot correct in the input."""


class LedgerMismatch(RunFailed):
    """A conservation law is violated, which is a bug in a kernel and never a fault of the input."""


class AuditFailed(RunFailed):
    """A constraint is violated, which is a bug in an optimizer or the MAC and never a fault of the input."""


class CannotWrite(RunFailed):
    """A file of a run could not be written."""


class RunInterrupted(VeflError):
    """A run, sweep or search that was stopped before its end, for example by Ctrl-C."""


class VeflWarning(UserWarning):
    """Base of all warnings of this package, for `warnings.filterwarnings`."""


warnings.filterwarnings("always", category=VeflWarning, append=True)  # also when a cell of a notebook runs again


class FinishedRun(VeflWarning):
    """A run that was done already was returned, and its watchers were not called."""


def first_line(error: BaseException) -> str:
    """The first line of an error's message (the reason of an OSError) without a full stop; its type if it has none."""
    lines = ((isinstance(error, OSError) and error.strerror) or str(error)).splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def printable(text: str) -> str:
    """A text in one line of bounded length, without characters that would act on a terminal: they are shown escaped."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    half = _MAX_CHARACTERS // 2
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:half]} … {text[-half:]}"
