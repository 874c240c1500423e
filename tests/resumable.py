"""A run that uses most features and takes a few seconds, for tests that stop, kill and continue it."""

from pathlib import Path

from vefl_sim import Run, RunWatcher, from_tables

EXPERIMENT = {
    "run": {"name": "stopped", "rounds": 8, "checkpoint_every": 1},
    "roads": {"blocks": 4},
    "mobility": {"max_speed_mps": 26.82, "driver_spread": 0.2, "step_s": 0.5},  # long steps take little time
    "traffic": {"mean_in_coverage": 12, "through_share": 0.5, "cv_share": 0.8},
    "radio": {"coverage_radius_m": 150.0, "prbs": 4, "max_tx_power_w": 0.02},
    "vefl": {"round_s": 1.0, "max_local_iterations": 4},
    "scheme": {"selected": 5},
    "data": {"train_samples": 800, "test_samples": 100, "image_px": 16, "min_samples": 5},
    "model": {"factory": "tests.scripted:thousand_weights"},
    "trace": {"slots": "full", "mobility_every_s": 0.7},
}
STOPPED = from_tables(EXPERIMENT)


class Kill(BaseException):
    """An exception that no code catches, so that the run ends as if it were killed."""


class Silent(RunWatcher):
    """A watcher that only records resumed rounds and notes; base class of the watchers that interfere."""

    def __init__(self) -> None:
        self.resumed: list[int] = []
        self.notes: list[str] = []

    def resuming(self, checkpoint, notes) -> None:
        self.resumed.append(checkpoint.round)
        self.notes += notes


class Killer(Silent):
    """A watcher that kills the run at the end of a round."""

    def __init__(self, round: int) -> None:
        super().__init__()
        self._round = round

    def round(self, report) -> None:
        if report.round == self._round:
            raise Kill


def contents(run: Run) -> dict[str, bytes]:
    """The bytes of all tables, of the confusion matrix and of the models, which a repeated run must reproduce."""
    tables = [file for file in (run.path / "tables").iterdir() if file.stem != "timings"]
    others = (file for pattern in ("confusion.json", "model.*", "models/*") for file in run.path.glob(pattern))
    return {file.name: file.read_bytes() for file in (*tables, *others)}


def figures(run: Run) -> dict:
    """The summary without wall times."""
    return {
        name: value
        for name, value in run.summary.items()
        if name not in ("wall_s", "cpu_s", "prepare_s", "prepare_cpu_s")
    }


def only(folder: Path) -> Run:
    """The only run in a folder; a run killed while its directory is created has a hidden name and is ignored."""
    [path] = (path for path in folder.iterdir() if path.name[0] != ".")
    return Run(path)
