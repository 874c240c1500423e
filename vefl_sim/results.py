"""The run directory: written once, never overwritten, read by anybody.

runs/<name>-<configuration digest>/
    experiment.toml  as the user wrote it      resolved.toml  with every default
    versions.json    of what it ran on         summary.json   figures and the content digest
    tables/*.parquet                           DONE, or FAILED with the error
"""

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from vefl_sim.errors import BadInput, RunNotFound
from vefl_sim.experiment import Experiment
from vefl_sim.loading import load, to_toml
from vefl_sim.mobility import recording
from vefl_sim.parts import part_digests
from vefl_sim.tables import SCHEMAS, content_digest

State = Literal["done", "failed", "unfinished"]
_VERSIONED = ("vefl_sim", "simpy", "numpy", "scipy", "jax", "jaxlib", "flax", "pyarrow", "pandas")
_NOT_CONTENT = {"timings"}  # wall-clock figures differ from run to run


class Run:
    """A run directory, for reading. Tables are pandas data frames."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / "resolved.toml").is_file():
            raise RunNotFound(f"{self.path} is not a run directory: it has no resolved.toml.")

    @property
    def state(self) -> State:
        """Whether the run came to its end."""
        if (self.path / "DONE").exists():
            return "done"
        return "failed" if (self.path / "FAILED").exists() else "unfinished"

    @property
    def experiment(self) -> Experiment:
        """The experiment, with every default."""
        return load(self.path / "resolved.toml")

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, {self.state})"

    @property
    def summary(self) -> dict[str, Any]:
        """Figures of the whole run; empty if it is not over."""
        file = self.path / "summary.json"
        if not file.exists() and self.state != "done":
            return {}
        try:
            return dict(json.loads(file.read_text()))
        except (OSError, ValueError):
            raise RunNotFound(f"{file} is missing or damaged: --fresh runs the experiment again.") from None

    def table(self, name: str) -> pd.DataFrame:
        """One table by name: events, rounds, vehicles, mobility, timings, slots."""
        file = self.path / "tables" / f"{name}.parquet"
        if name not in SCHEMAS:
            raise RunNotFound(f"There is no table {name!r}; the tables are {', '.join(SCHEMAS)}.")
        if not file.exists():
            raise RunNotFound(f"{file} is not there: the run has not recorded it, or was killed before its end.")
        try:
            return pd.read_parquet(file, dtype_backend="numpy_nullable")
        except (OSError, ValueError) as error:
            raise RunNotFound(f"{file} cannot be read: {str(error).splitlines()[0]}.") from None

    @property
    def events(self) -> pd.DataFrame:
        """The trace."""
        return self.table("events")

    @property
    def rounds(self) -> pd.DataFrame:
        """One row per round."""
        return self.table("rounds")

    @property
    def vehicles(self) -> pd.DataFrame:
        """One row per round and CV in coverage at its start."""
        return self.table("vehicles")

    def content_digest(self) -> str:
        """Digest of everything that must repeat."""
        files = (self.path / "tables").glob("*.parquet")
        return content_digest([file for file in files if file.stem not in _NOT_CONTENT])

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the summary."""
        write_text(self.path / "summary.json", json.dumps(dict(summary), indent=2) + "\n")

    def mark(self, state: Literal["DONE", "FAILED"], text: str) -> None:
        """Leave the marker that tells how it ended; the last thing written."""
        write_text(self.path / state, text + "\n")


def config_digest(experiment: Experiment) -> str:
    """Digest of the resolved TOML, of this package, of the source of the user's own parts and of a recording."""
    parts = json.dumps(part_digests(experiment), sort_keys=True)
    texts = [to_toml(experiment), version("vefl_sim"), package_digest(), parts]
    if experiment.mobility.file:
        texts.append(recording.digest(experiment.mobility.file))
    text = "\n".join(texts)
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def package_digest() -> str:
    """Of our own sources: whoever edits an installed copy must not be shown the results of the old one."""
    home, digest = Path(__file__).parent, hashlib.sha256()
    for file in sorted(home.rglob("*.py")):
        digest.update(str(file.relative_to(home)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def finished_run(experiment: Experiment, out: Path) -> Run | None:
    """A run of the very same configuration that is done, if there is one."""
    for path in _siblings(experiment, out):
        if (path / "DONE").exists():
            return Run(path)
    return None


def create_run(experiment: Experiment, out: Path, toml: str | None = None, settings: Sequence[str] = ()) -> Run:
    """A new directory for a run; a number is added when the name is taken."""
    base = out / f"{experiment.run.name}-{config_digest(experiment)[:8]}"
    path, number = base, 1
    try:
        out.mkdir(parents=True, exist_ok=True)
        while True:
            try:
                path.mkdir()
                break
            except FileExistsError:
                number += 1
                path = base.with_name(f"{base.name}-{number}")
        (path / "tables").mkdir()
        write_text(path / "experiment.toml", toml or to_toml(experiment))
        write_text(path / "versions.json", json.dumps(_versions(experiment) | {"set": list(settings)}, indent=2) + "\n")
        write_text(path / "resolved.toml", to_toml(experiment))
    except OSError as error:
        raise BadInput(f"{error.filename or out} cannot be written ({error.strerror}): choose another --out.") from None
    return Run(path)


def write_text(path: Path, text: str) -> None:
    """Write a small file so that it is there whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _siblings(experiment: Experiment, out: Path) -> list[Path]:
    name = f"{experiment.run.name}-{config_digest(experiment)[:8]}"
    return sorted(path for path in (out / name, *out.glob(f"{name}-*")) if path.is_dir())


def _versions(experiment: Experiment) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "vefl_sim source": package_digest(),
        "packages": {name: version(name) for name in _VERSIONED},
        "parts": part_digests(experiment),
        "configuration": config_digest(experiment),
    }
