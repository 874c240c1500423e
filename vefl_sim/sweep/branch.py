"""Branches of a run: the same world, in which some keys have other values from some time on."""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from shutil import copyfile, copytree
from typing import Any

from vefl_sim.core.clock import to_ns
from vefl_sim.core.errors import BadInput, ExperimentError
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.fields import Settings, setting_texts
from vefl_sim.experiment.part_files import parts_in
from vefl_sim.experiment.toml import from_tables, override
from vefl_sim.records.checkpoint import Checkpoint, Checkpoints
from vefl_sim.records.identity import Identity, require_same_version
from vefl_sim.records.lock import locked
from vefl_sim.records.run_directory import Run, find_or_create_run
from vefl_sim.simulation.run import simulate


def branch(
    run: Run | str | Path,
    settings: Settings,
    *,
    from_round: int | None = None,
    at_s: float | None = None,
    parts: str | Path | None = None,
    watcher: Any = None,
) -> Run:
    """What would have become of a run with other values of some keys from a round, or a time, on; beside the run.

    The branch is the experiment of the run with another [[change]]. It starts from the last checkpoint of the run
    before the change, if one is left (`run.keep_checkpoints`), else from the start: the results are the same. `parts`
    as for `resume`.
    """
    run = run if isinstance(run, Run) else Run(run)
    with parts_in(parts):
        require_same_version(run.path)  # of another version the first rounds may be others
        experiment = _branched(run.experiment, settings, from_round, at_s)
        identity = Identity(experiment)
        made = find_or_create_run(identity, run.path.parent)
        if made.is_untouched:
            with locked(made.path, identity.versions):
                _begin_at_checkpoint(made, run, from_round, at_s)
        return simulate(experiment, out=run.path.parent, watcher=watcher)


def _branched(experiment: Experiment, settings: Settings, from_round: int | None, at_s: float | None) -> Experiment:
    """The experiment with one more change."""
    change: dict[str, Any] = {"from_round": from_round, "at_s": at_s}
    override(change, setting_texts(settings))
    tables = experiment.model_dump(exclude_none=True, exclude_defaults=True)
    changes = [*tables.get("change", ()), {key: value for key, value in change.items() if value is not None}]
    try:
        return from_tables(tables | {"change": changes})
    except ExperimentError as error:
        number = f"change {len(changes)}: "
        raise ExperimentError([problem.removeprefix(number) for problem in error.problems]) from None


def _begin_at_checkpoint(made: Run, parent: Run, from_round: int | None, at_s: float | None) -> None:
    """Copy the newest usable checkpoint of the parent from before the change, with the files that it needs."""
    for checkpoint in _checkpoints(parent):
        if checkpoint.round < from_round if from_round is not None else checkpoint.time_ns < to_ns(at_s or 0.0):
            with ExitStack() as undone, suppress(OSError):  # the parent may be running, and just delete a file
                undone.callback(Checkpoints(made.path).remove_after, None)
                for folder in ("checkpoints", "parts"):
                    (made.path / folder).mkdir(exist_ok=True)
                for folder in ("models", "traffic"):
                    if (parent.path / folder).is_dir():
                        copytree(parent.path / folder, made.path / folder, dirs_exist_ok=True)
                for name in checkpoint.files:
                    copyfile(parent.path / "parts" / name, made.path / "parts" / name)
                copyfile(Checkpoints(parent.path).file_of(checkpoint), Checkpoints(made.path).file_of(checkpoint))
                undone.pop_all()
            return


def _checkpoints(parent: Run) -> Iterator[Checkpoint]:
    """The usable checkpoints of a run, the newest first."""
    with suppress(BadInput):
        yield from Checkpoints(parent.path).usable()
