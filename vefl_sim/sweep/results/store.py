"""Results that are kept beside an experiment's file, in its folder `results`, so that figures need no runs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import part_digests
from vefl_sim.learning.datasets.files.inventory import require_whole
from vefl_sim.records.identity import mobility_digest, recorded_versions
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.points import Point
from vefl_sim.sweep.results.keys import keys_of, matches, matches_network
from vefl_sim.sweep.results.measurements import RunMeasurements
from vefl_sim.sweep.results.probes import Probes, source_digest
from vefl_sim.sweep.results.result import SUFFIX, Origin, Result, read_result, result_from, write_result

FOLDER = "results"
_OURS = ("vefl_models.", "vefl_sim.")
_Stamp = tuple[int, int, int]
"""When a file was written, how large it is, and which it is on its disk: another one if it was replaced."""


@dataclass
class Store:
    """The results of one folder; `refresh` looks whether its files have changed."""

    folder: Path
    problems: list[str] = field(default_factory=list)  # of files that cannot be read, one sentence each

    @classmethod
    def beside(cls, file: Path) -> "Store":
        """The store of an experiment's file; it may not be there."""
        return cls(file.parent / FOLDER)

    def __post_init__(self) -> None:
        self._seen: dict[Path, _Stamp] = {}  # when each file was last read; also of those that cannot be

    @cached_property
    def _results(self) -> dict[Path, Result]:
        found: dict[Path, Result] = {}
        self._look_again(found)
        return found

    @cached_property
    def probes(self) -> Probes:
        """What the schemes did when the results were made."""
        return Probes.in_folder(self.folder)

    def __len__(self) -> int:
        return len(self._results)

    def find(self, point: Point, *, learning: bool = True) -> Result | None:
        """The result of a point, if there is one; a current one before a stale one, then one with the very keys.

        `learning`: whether it shall be stale if only what is learnt has changed.
        """
        wanted = keys_of(point.experiment)
        there = [result for result in self._with_seed(wanted) if self._has_inputs(result, point.experiment)]
        exact = [result for result in there if matches(result.keys, wanted)]
        others = [result.without_learning() for result in there if matches_network(result.keys, wanted)]
        marked = [self._marked(result, learning) for result in (*exact, *others)]
        return min(marked, key=lambda result: result.stale, default=None)

    def add(self, run: Run) -> Path:
        """Store a finished run; results that it replaces are removed.

        Raises BadInput if it is stale and would replace a current result, or if it did not have all of its data set.
        """
        experiment = run.experiment
        require_whole(experiment.data)
        keys = keys_of(experiment)
        before = {path: result for path, result in self._results.items() if matches(result.keys, keys)}
        result = result_from(RunMeasurements(run), self._origin(run, experiment, keys))
        if self._is_stale(result) and not all(map(self._is_stale, before.values())):
            raise BadInput("the code has changed such results since this run, and a current one is stored.")
        path = write_result(result, self.folder)
        for old in before:
            if old != path:
                old.unlink(missing_ok=True)
        self._look_again(self._results)
        return path

    def refresh(self) -> None:
        """Look at the folder again: another process may have added results or probes."""
        self.__dict__.pop("probes", None)
        self._look_again(self._results)

    def wall_times(self, experiment: Experiment) -> list[float]:
        """Seconds that results of such experiments took: of the same scheme, data set, round length and learning."""
        alike = ("scheme.kind", "scheme.constrained", "data.kind", "learning.kind", "vefl.round_s")
        keys = keys_of(experiment)
        return [
            result.file.wall_s
            for result in self._results.values()
            if result.file.wall_s and all(result.keys.get(key) == keys.get(key) for key in alike)
        ]

    def _look_again(self, results: dict[Path, Result]) -> None:
        """Read files that are new or changed, and forget those that are gone."""
        there = {path: stamp for path in sorted(self.folder.glob(f"*{SUFFIX}")) if (stamp := _stamp(path))}
        for path in [path for path in self._seen if there.get(path) != self._seen[path]]:
            results.pop(path, None)
            self.problems[:] = [problem for problem in self.problems if not problem.startswith(f"{path} ")]
        for path in [path for path, stamp in there.items() if self._seen.get(path) != stamp]:
            if result := self._read(path):
                results[path] = result
        self._seen = there

    def _read(self, path: Path) -> Result | None:
        try:
            return read_result(path)
        except BadInput as error:
            self.problems += [problem for problem in error.problems if problem not in self.problems]
            return None

    def _with_seed(self, wanted: Mapping[str, Any]) -> Iterator[Result]:
        """A quick first choice."""
        kinds = ("run.seed", "scheme.kind", "data.kind")
        return (r for r in self._results.values() if all(r.keys.get(key) == wanted.get(key) for key in kinds))

    def _has_inputs(self, result: Result, experiment: Experiment) -> bool:
        return result.file.inputs == inputs_of(experiment)

    def _marked(self, result: Result, learning: bool) -> Result:
        stale = self.probes.is_stale(result.keys, result.file.source, learning=learning and result.learns)
        return replace(result, stale=stale)

    def _is_stale(self, result: Result) -> bool:
        return self._marked(result, True).stale

    def _origin(self, run: Run, experiment: Experiment, keys: Mapping[str, Any]) -> Origin:
        noted, summary = recorded_versions(run.path), run.summary
        packages = noted.get("packages", {})
        return Origin(
            keys,
            inputs_of(experiment),
            str(packages.get("vefl_sim", version("vefl_sim"))),
            source_digest(noted),
            str(summary.get("content_digest", "")),
            float(summary.get("wall_s", 0.0)) + float(summary.get("prepare_s", 0.0)),
        )


def _stamp(path: Path) -> _Stamp | None:
    try:
        message = path.stat()
    except OSError:  # another process has just removed it
        return None
    return message.st_mtime_ns, message.st_size, message.st_ino


def inputs_of(experiment: Experiment) -> dict[str, str]:
    """Digests of what an experiment reads beside its keys: a recording or map, and parts of the user's own."""
    found = {name: digest for name, digest in part_digests(experiment).items() if not name.startswith(_OURS)}
    if experiment.mobility.file:
        found["mobility.file"] = mobility_digest(experiment)
    return found


def runs_in(folders: Iterable[Path]) -> Iterator[Run]:
    """The finished runs of some folders, each a run directory or the parent of run directories."""
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"{folder} is not there: name a run directory, or a folder of run directories.")
        inside = [folder] if (folder / "resolved.toml").is_file() else sorted(folder.iterdir())
        yield from (run for path in inside if (path / "resolved.toml").is_file() and (run := Run(path)).is_done)
