"""What an executor is: it is given jobs, one per point, and reports what becomes of them."""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, Self

JobState = Literal["done", "failed", "stopped", "busy", "died"]


@dataclass(frozen=True)
class Job:
    """One point, as it travels to another process or machine."""

    digest: str  # of the point
    toml: str  # the experiment, with every default
    out: str
    cwd: str  # files and parts in the experiment are found from here
    source: str  # digest of our sources: results of several versions are not mixed

    def text(self) -> str:
        """On one line."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Self:
        """Undo `text`."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class JobOutcome:
    """How it ended. `busy`: another process works on the run; `died`: the worker ended without a word."""

    state: JobState
    run: str = ""  # the name of its directory
    error: str = ""
    wall_s: float = 0.0  # of this attempt
    peak_mb: float = 0.0


@dataclass(frozen=True)
class Report:
    """Something that happened to a point. Without an outcome it is at work, so much of it done, if that is known."""

    digest: str
    share: float | None = None
    process: int = 0
    outcome: JobOutcome | None = None

    @classmethod
    def of(cls, message: dict[str, Any]) -> Self:
        """From plain values."""
        outcome = message.get("outcome")
        return cls(**{**message, "outcome": JobOutcome(**outcome) if outcome else None})


class Executor(Protocol):
    """Takes jobs and tells what becomes of them. Every job that is begun ends with one report with an outcome."""

    def size(self) -> int:
        """How many points it can run at once; it may grow."""
        ...

    def can_start(self, needed_mb: float, running: Collection[str]) -> bool:
        """Whether it can begin with another job, which needs so much memory, beside those."""
        ...

    def begin(self, job: Job, needed_mb: float) -> None:
        """Begin with a job, or put it at the end of a queue."""
        ...

    def poll(self, patience_s: float) -> Report | None:
        """The next thing that happened; None if nothing did."""
        ...

    def stop(self) -> None:
        """Let all jobs save what they have, and end."""
        ...

    def close(self) -> None:
        """End everything at once."""
        ...

    def __str__(self) -> str: ...
