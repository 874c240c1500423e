"""The results stored in the folder `results` beside an experiment's file, from which figures are drawn."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path

from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import part_digests
from vefl_sim.learning.datasets.public import require_whole
from vefl_sim.records.identity import mobility_digest, recorded_versions, start_digest
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.points import Point
from vefl_sim.sweep.results.keys import Keys, keys_of, matches, matches_network, toml_of
from vefl_sim.sweep.results.probes import Probes, source_digest
from vefl_sim.sweep.results.result import SUFFIX, Result, RunMeasurements, read_result, result_from, write_result

FOLDER = "results"
_OURS = ("vefl_models.", "vefl_sim.")


@dataclass
class Store:
    """The results of one folder; `refresh` reads files that have changed since."""

    folder: Path

    @classmethod
    def beside(cls, file: Path) -> "Store":
        """The store of an experiment's file; its folder need not exist."""
        return cls(file.parent / FOLDER)

    @cached_property
    def _read(self) -> dict[Path, Result | str]:
        """The result in each file, or what is wrong with the file."""
        read = {}
        for path in sorted(self.folder.glob(f"*{SUFFIX}")):
            with suppress(FileNotFoundError):  # another process has just removed it
                stat = path.stat()
                read[path] = _result(path, stat.st_mtime_ns, stat.st_size, stat.st_ino)
        return read

    @property
    def problems(self) -> list[str]:
        """One sentence for each file that cannot be read."""
        return [problem for problem in self._read.values() if isinstance(problem, str)]

    @cached_property
    def probes(self) -> Probes:
        """The probes, which show whether the code has changed results."""
        return Probes.in_folder(self.folder)

    def refresh(self) -> None:
        """Read the folder again, because another process may have added results or probes."""
        for name in ("_read", "probes"):
            self.__dict__.pop(name, None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Result]:
        return (result for result in self._read.values() if isinstance(result, Result))

    def find(self, point: Point, *, learning: bool = True) -> Result | None:
        """The result of a point, or None; current results come before stale ones, then those with exactly its keys.

        `learning`: whether a result is stale if only what is learnt has changed.
        """
        wanted, kinds = keys_of(point.experiment), ("run.seed", "scheme.kind", "data.kind")
        alike = [result for result in self if all(result.keys.get(key) == wanted.get(key) for key in kinds)]
        inputs = inputs_of(point.experiment) if alike else {}
        candidates = [result for result in alike if result.file.inputs == inputs]
        exact = [result for result in candidates if matches(result.keys, wanted)]
        others = [result.without_learning() for result in candidates if matches_network(result.keys, wanted)]
        marked = [replace(result, stale=self._is_stale(result, learning)) for result in (*exact, *others)]
        return min(marked, key=lambda result: result.stale, default=None)

    def add(self, run: Run) -> Path:
        """Store a finished run, and remove the results that it replaces; returns the new file.

        Raises BadInput if its tables are not those that it wrote, if it is stale and would replace a current result, or
        if its data set was incomplete.
        """
        experiment, summary, recorded = run.experiment, run.summary, recorded_versions(run.path)
        require_whole(experiment.data)
        if fault := run.content_fault:
            raise BadInput(f"{fault}: restore its tables, or run it again with --fresh.")
        keys = keys_of(experiment)
        result = result_from(
            RunMeasurements(run),
            toml=toml_of(keys),
            inputs=inputs_of(experiment),
            version=str(recorded["packages"].get("vefl_sim", version("vefl_sim"))),
            source=source_digest(recorded),
            content=str(summary.get("content_digest", "")),
            wall_s=round(summary.get("wall_s", 0.0) + summary.get("prepare_s", 0.0), 1),
            cpu_s=round(summary["cpu_s"] + summary.get("prepare_cpu_s", 0.0), 1) if "cpu_s" in summary else None,
        )
        if self._is_stale(result) and self._has_current(keys):
            raise BadInput("the code has changed its results since this run, and a current one is stored.")
        return self._write(result)

    def adopt(self, result: Result) -> Path | None:
        """Store a result of another store, whose probes have been adopted, and remove those that it replaces.

        Returns None, and stores nothing, if the result is stale or a current one is stored.
        """
        return None if self._is_stale(result) or self._has_current(result.keys) else self._write(result)

    def _write(self, result: Result) -> Path:
        """Write a result, and remove the files that it replaces."""
        before = [old.path for old in self if old.path and matches(old.keys, result.keys)]
        path = write_result(result, self.folder)
        for old in before:
            if old != path:
                old.unlink(missing_ok=True)
        self.__dict__.pop("_read", None)
        return path

    def _is_stale(self, result: Result, learning: bool = True) -> bool:
        return self.probes.is_stale(result.keys, result.file.source, learning=learning and result.learns)

    def _has_current(self, keys: Keys) -> bool:
        return any(matches(result.keys, keys) and not self._is_stale(result) for result in self)


@cache
def _result(path: Path, *_stamp: int) -> Result | str:
    """The result in a file, or what is wrong with it; it is read again if its time, size or inode has changed."""
    try:
        return read_result(path)
    except BadInput as error:
        return str(error)


def inputs_of(experiment: Experiment) -> dict[str, str]:
    """Digests of what an experiment reads besides its keys: a recording or map, an initial model, its own parts."""
    inputs = {name: digest for name, digest in part_digests(experiment).items() if not name.startswith(_OURS)}
    if experiment.mobility.file:
        inputs["mobility.file"] = mobility_digest(experiment)
    if experiment.model.start:
        inputs["model.start"] = start_digest(experiment.model.start)
    return inputs
