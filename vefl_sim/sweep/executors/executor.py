"""The interface of executors, which run jobs, one per point, and report their progress and outcomes."""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, Self

JobState = Literal["done", "failed", "stopped", "busy", "died"]


@dataclass(frozen=True)
class Job:
    """One point, in the form that is sent to another process or machine."""

    digest: str  # of the point
    toml: str  # the experiment, with all defaults
    out: str  # parent of the run directories
    cwd: str  # folder from which files and parts of the experiment are found
    source: str  # digest of our sources, so that results of different versions are not mixed
    fresh: bool = False  # run it in a new directory, even if there is a run of this point
    run: str = ""  # name of the run directory to resume, if an earlier attempt with `fresh` has created one

    def to_json(self) -> str:
        """The job as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The job that `to_json` wrote."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class JobOutcome:
    """How a job ended. `busy`: another process works on the run; `died`: the worker ended without an outcome."""

    state: JobState
    run: str = ""  # name of the run directory
    error: str = ""
    wall_s: float = 0.0  # wall time of this attempt
    peak_mb: float = 0.0


@dataclass(frozen=True)
class Report:
    """Progress or outcome of a point. Without an outcome the point is running, and `share` of it is done if known."""

    digest: str
    share: float | None = None
    process: int = 0  # id of the worker, if known
    run: str = ""  # name of the run directory, if known
    warning: str = ""  # a sentence about something that went wrong and does not stop the run
    outcome: JobOutcome | None = None

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The report with these fields, as `dataclasses.asdict` or JSON gives them."""
        outcome = fields.get("outcome")
        return cls(**{**fields, "outcome": JobOutcome(**outcome) if outcome else None})


class Executor(Protocol):
    """Runs jobs and reports on them. Every job that is started ends with exactly one report with an outcome."""

    def size(self) -> int:
        """Number of points that can run at once; it may change."""
        ...

    def can_start(self, needed_mb: float, running: Collection[str]) -> bool:
        """Whether another job that needs this much memory can start beside those that run, given by their digests."""
        ...

    def start(self, job: Job, needed_mb: float) -> None:
        """Start a job, or add it to the end of a queue."""
        ...

    def poll(self, timeout_s: float) -> Report | None:
        """The next report of any job; None if there is none within this time."""
        ...

    def stop(self) -> None:
        """Ask all jobs to save their state and end."""
        ...

    def close(self) -> None:
        """End all jobs at once and release the workers."""
        ...

    def __str__(self) -> str: ...
