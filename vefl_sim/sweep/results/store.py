"""The results stored in the folder `results` beside an experiment's file, from which figures are drawn."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import part_digests
from vefl_sim.learning.datasets.public import require_whole
from vefl_sim.records.identity import mobility_digest, recorded_versions, start_digest
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.points import Point
from vefl_sim.sweep.results.keys import keys_of, matches, matches_network
from vefl_sim.sweep.results.measurements import RunMeasurements
from vefl_sim.sweep.results.probes import Probes, source_digest
from vefl_sim.sweep.results.result import SUFFIX, Origin, Result, read_result, result_from, write_result

FOLDER = "results"
_OURS = ("vefl_models.", "vefl_sim.")
_Stamp = tuple[int, int, int]
"""Modification time, size and inode of a file, which change if it is replaced."""


@dataclass
class Store:
    """The results of one folder, which are read once; `refresh` reads files that have changed since."""

    folder: Path
    problems: list[str] = field(default_factory=list)  # one sentence for each file that cannot be read

    @classmethod
    def beside(cls, file: Path) -> "Store":
        """The store of an experiment's file; its folder need not exist."""
        return cls(file.parent / FOLDER)

    def __post_init__(self) -> None:
        self._stamps: dict[Path, _Stamp] = {}  # of each file when it was last read, including unreadable ones

    @cached_property
    def _results(self) -> dict[Path, Result]:
        results: dict[Path, Result] = {}
        self._read_changed(results)
        return results

    @cached_property
    def probes(self) -> Probes:
        """The probes, which show whether the code has changed results."""
        return Probes.in_folder(self.folder)

    def __len__(self) -> int:
        return len(self._results)

    def find(self, point: Point, *, learning: bool = True) -> Result | None:
        """The result of a point, or None; current results come before stale ones, then those with exactly its keys.

        `learning`: whether a result is stale if only what is learnt has changed.
        """
        wanted = keys_of(point.experiment)
        candidates = [result for result in self._candidates(wanted) if self._has_inputs(result, point.experiment)]
        exact = [result for result in candidates if matches(result.keys, wanted)]
        others = [result.without_learning() for result in candidates if matches_network(result.keys, wanted)]
        marked = [self._marked(result, learning) for result in (*exact, *others)]
        return min(marked, key=lambda result: result.stale, default=None)

    def add(self, run: Run) -> Path:
        """Store a finished run, and remove the results that it replaces; returns the new file.

        Raises BadInput if its tables are not those that it wrote, if it is stale and would replace a current result, or
        if its data set was incomplete.
        """
        experiment = run.experiment
        require_whole(experiment.data)
        if fault := run.content_fault:
            raise BadInput(f"{fault}: restore its tables, or run it again with --fresh.")
        keys = keys_of(experiment)
        before = {path: result for path, result in self._results.items() if matches(result.keys, keys)}
        result = result_from(RunMeasurements(run), self._origin(run, experiment, keys))
        if self._is_stale(result) and not all(map(self._is_stale, before.values())):
            raise BadInput("the code has changed its results since this run, and a current one is stored.")
        return self._write(result, before)

    def _write(self, result: Result, before: Iterable[Path]) -> Path:
        """Write a result, and remove the files that it replaces."""
        path = write_result(result, self.folder)
        for old in before:
            if old != path:
                old.unlink(missing_ok=True)
        self._read_changed(self._results)
        return path

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results.values())

    def adopt(self, result: Result) -> Path | None:
        """Store a result of another store, whose probes have been adopted, and remove those that it replaces.

        Returns None, and stores nothing, if the result is stale or a current one is stored.
        """
        before = {path: one for path, one in self._results.items() if matches(one.keys, result.keys)}
        if self._is_stale(result) or not all(map(self._is_stale, before.values())):
            return None
        return self._write(result, before)

    def refresh(self) -> None:
        """Read the folder again, because another process may have added results or probes."""
        self.__dict__.pop("probes", None)
        self._read_changed(self._results)

    def times_s(self, experiment: Experiment) -> list[float]:
        """CPU times, in seconds, of results with the same scheme, data set, round length and learning.

        A result without its CPU time counts with its wall time, which is longer where other work shared the core.
        """
        alike = ("scheme.kind", "scheme.constrained", "data.kind", "learning.kind", "vefl.round_s")
        keys = keys_of(experiment)
        return [
            result.file.wall_s if result.file.cpu_s is None else result.file.cpu_s
            for result in self._results.values()
            if result.file.wall_s and all(result.keys.get(key) == keys.get(key) for key in alike)
        ]

    def _read_changed(self, results: dict[Path, Result]) -> None:
        """Read files that are new or changed into `results`, and remove those that no longer exist."""
        stamps = {path: stamp for path in sorted(self.folder.glob(f"*{SUFFIX}")) if (stamp := _stamp(path))}
        for path in [path for path in self._stamps if stamps.get(path) != self._stamps[path]]:
            results.pop(path, None)
            self.problems[:] = [problem for problem in self.problems if not problem.startswith(f"{path} ")]
        for path in [path for path, stamp in stamps.items() if self._stamps.get(path) != stamp]:
            if result := self._read(path):
                results[path] = result
        self._stamps = stamps

    def _read(self, path: Path) -> Result | None:
        try:
            return read_result(path)
        except BadInput as error:
            self.problems += [problem for problem in error.problems if problem not in self.problems]
            return None

    def _candidates(self, wanted: Mapping[str, Any]) -> Iterator[Result]:
        """Results with the same seed, scheme and data set: a fast first filter."""
        kinds = ("run.seed", "scheme.kind", "data.kind")
        return (r for r in self._results.values() if all(r.keys.get(key) == wanted.get(key) for key in kinds))

    def _has_inputs(self, result: Result, experiment: Experiment) -> bool:
        return result.file.inputs == inputs_of(experiment)

    def _marked(self, result: Result, learning: bool) -> Result:
        """The result with `stale` set."""
        stale = self.probes.is_stale(result.keys, result.file.source, learning=learning and result.learns)
        return replace(result, stale=stale)

    def _is_stale(self, result: Result) -> bool:
        return self._marked(result, True).stale

    def _origin(self, run: Run, experiment: Experiment, keys: Mapping[str, Any]) -> Origin:
        recorded, summary = recorded_versions(run.path), run.summary
        packages = recorded.get("packages", {})
        return Origin(
            keys,
            inputs_of(experiment),
            str(packages.get("vefl_sim", version("vefl_sim"))),
            source_digest(recorded),
            str(summary.get("content_digest", "")),
            float(summary.get("wall_s", 0.0)) + float(summary.get("prepare_s", 0.0)),
            float(summary["cpu_s"]) + float(summary.get("prepare_cpu_s", 0.0)) if "cpu_s" in summary else None,
        )


def _stamp(path: Path) -> _Stamp | None:
    try:
        stat = path.stat()
    except OSError:  # another process has just removed it
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def inputs_of(experiment: Experiment) -> dict[str, str]:
    """Digests of what an experiment reads besides its keys: a recording or map, an initial model, its own parts."""
    inputs = {name: digest for name, digest in part_digests(experiment).items() if not name.startswith(_OURS)}
    if experiment.mobility.file:
        inputs["mobility.file"] = mobility_digest(experiment)
    if experiment.model.start:
        inputs["model.start"] = start_digest(experiment.model.start)
    return inputs


def runs_in(folders: Iterable[Path]) -> Iterator[Run]:
    """The finished runs of some folders, each a run directory or the parent of run directories."""
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"{folder} does not exist: give a run directory, or a folder of run directories.")
        inside = [folder] if (folder / "resolved.toml").is_file() else sorted(folder.iterdir())
        yield from (run for path in inside if (path / "resolved.toml").is_file() and (run := Run(path)).is_done)
