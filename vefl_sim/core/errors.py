"""What can go wrong, as a tree.

VeflError                     everything this package raises on purpose
├── BadInput                  the user can fix it: exit code 2, one sentence per problem
│   ├── ExperimentError       the TOML file, a --set option, or a part named "module:name"
│   ├── RunNotFound           a run directory that is not there or cannot be read
│   ├── RunLocked             a run that another process is working on
│   └── NotResumable          a run that cannot be continued here, or whose checkpoints are damaged
├── RunFailed                 the run itself went wrong: exit code 1
│   ├── LedgerMismatch        bits, joules or money that do not add up
│   ├── AuditFailed           a plan or a slot that breaks one of C1–C12
│   └── CannotWrite           the disk is full, or may not be written; what was written stays
└── RunInterrupted            the user stopped it; it can be continued: exit code 130
"""

from collections.abc import Sequence


class VeflError(Exception):
    """Base of all errors raised on purpose."""


class BadInput(VeflError):
    """Input that a user can correct. Holds one sentence per problem."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        # SimPy rebuilds exceptions from their args, so args must be exactly what __init__ takes.
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
    """A run that cannot be continued from where it stopped."""


class RunFailed(VeflError):
    """A run that broke while running."""


class LedgerMismatch(RunFailed):
    """A conservation law was broken: a bug in a kernel, never in the input."""


class AuditFailed(RunFailed):
    """A constraint was broken: a bug in an optimizer or in the MAC, never in the input."""


class CannotWrite(RunFailed):
    """A file of a run could not be written."""


class RunInterrupted(VeflError):
    """A run that was stopped from outside."""
