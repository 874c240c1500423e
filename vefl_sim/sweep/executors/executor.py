"""Those who run points, whoever they are."""

from collections.abc import Collection
from typing import Protocol

from vefl_sim.sweep.executors.job import Job, Report


class Crew(Protocol):
    """Takes jobs and tells what becomes of them. Every job that is begun ends with one report with an outcome."""

    def size(self) -> int:
        """How many points it can run at once; it may grow."""
        ...

    def takes(self, needed_mb: float, running: Collection[str]) -> bool:
        """Whether it can begin with another job, which needs so much memory, beside those."""
        ...

    def begin(self, job: Job, needed_mb: float) -> None:
        """Begin with a job, or put it at the end of a queue."""
        ...

    def heard(self, patience_s: float) -> Report | None:
        """The next thing that happened; None if nothing did."""
        ...

    def stop(self) -> None:
        """Let all jobs save what they have, and end."""
        ...

    def close(self) -> None:
        """End everything at once."""
        ...

    def __str__(self) -> str: ...
