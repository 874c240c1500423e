"""What identifies a run: digests of its configuration and source code, and the versions of libraries."""

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, Self

from vefl_sim.core.errors import ExperimentError, NotResumable, first_line
from vefl_sim.core.files import open_file, read_json
from vefl_sim.core.memory import require_memory
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.part_files import part_digest
from vefl_sim.experiment.plugins import declaration, part_digests
from vefl_sim.experiment.toml import as_toml, resolved
from vefl_sim.experiment.unused_keys import without_unused_keys
from vefl_sim.mobility.recorded import recording

_VERSIONED = ("vefl_sim", "simpy", "numpy", "scipy", "jax", "jaxlib", "flax", "pyarrow", "pandas")

version = cache(metadata.version)  # it reads a file each time, and a sweep asks for it at every point


class Identity:
    """What identifies a run: digests are computed once, because that of a recording takes time.

    `experiment` has all its defaults, and keys that it does not use are at theirs, as in the resolved.toml of its run.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = resolved(without_unused_keys(experiment))

    @classmethod
    def recorded(cls, experiment: Experiment, parts: Mapping[str, str] | None = None) -> Self:
        """The identity of a run from its resolved.toml; no user-defined part is imported to find out what it declares.

        `parts`: digests to take for user-defined parts, instead of those of their present sources.
        """
        identity = cls.__new__(cls)
        identity.experiment = experiment
        if parts is not None:
            identity.parts = dict(parts)
        return identity

    @cached_property
    def parts(self) -> dict[str, str]:
        """Digests of the sources of user-defined parts."""
        return part_digests(self.experiment)

    @cached_property
    def configuration(self) -> str:
        """Digest of the experiment, this package, user-defined parts, and of the recording, map or initial model."""
        experiment, parts = self.experiment, json.dumps(self.parts, sort_keys=True)
        texts = [as_toml(_without_neutral_keys(experiment)), version("vefl_sim"), package_digest(), parts]
        if experiment.mobility.file:
            texts.append(mobility_digest(experiment))
        if experiment.model.start:
            texts.append(start_digest(experiment.model.start))
        return hashlib.sha256("\n".join(texts).encode()).hexdigest()

    @property
    def directory(self) -> str:
        """Name of the run directory; a number is added to further ones of the same configuration."""
        return f"{self.experiment.run.name}-{self.configuration[:8]}"

    @cached_property
    def versions(self) -> dict[str, Any]:
        """Versions and digests of everything that a run depends on, as written to versions.json."""
        return {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "vefl_sim source": package_digest(),
            "packages": {name: version(name) for name in (*_VERSIONED, *_traffic_packages(self.experiment))},
            "parts": self.parts,
            "configuration": self.configuration,
        }


def config_digest(experiment: Experiment) -> str:
    """The digest of an experiment's configuration, which names its runs."""
    return Identity(experiment).configuration


def mobility_digest(experiment: Experiment) -> str:
    """Digest of the recording or map that `mobility.file` names; a device or pipe, which may never end, is refused."""
    path = Path(experiment.mobility.file)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ExperimentError(f'mobility.file = "{path}" is neither a file nor a folder: name a recording or a map.')
    digest = declaration("mobility.kind", experiment.mobility.kind, "file_digest", None) or recording.recording_digest
    return str(digest(experiment.mobility.file))


def start_digest(file: str) -> str:
    """Digest of the initial model that `model.start` names; one that does not fit into memory is not read."""
    try:
        with open_file(Path(file)) as content:
            size = os.fstat(content.fileno()).st_size
            require_memory(size, f'The arrays of model.start = "{file}"', "name a smaller file")
            return hashlib.file_digest(content, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        where = "relative paths start at the folder of the experiment's file, or where you start the run"
        raise ExperimentError(f'model.start = "{file}" cannot be read ({first_line(error)}); {where}.') from None


def _without_neutral_keys(experiment: Experiment) -> Experiment:
    """Reset the keys that change no result, so that a run can be resumed after they were edited."""
    run = experiment.run.model_copy(update={"checkpoint_every": None, "watch": None})
    learning = experiment.learning.model_copy(update={"threads": None})
    sumo = experiment.sumo.model_copy(update={"client": "libsumo"})
    file_name = Path(experiment.mobility.file).name  # the folder does not matter; the content is digested separately
    mobility = experiment.mobility.model_copy(update={"file": file_name})
    start = experiment.model.start and Path(experiment.model.start).name
    model = experiment.model.model_copy(update={"start": start})
    tables = {"run": run, "learning": learning, "sumo": sumo, "mobility": mobility, "model": model}
    return experiment.model_copy(update=tables)


_PRESENTATION = {"__main__", "cli", "analysis", "sweep"}
"""Packages that use simulations and cannot change them: editing these (a figure, say) requires no new runs."""


@cache
def package_digest() -> str:
    """Digest of the sources of vefl_sim, so that an edited copy never shows the results of the unedited one."""
    home, digest = Path(__file__).parents[1], hashlib.sha256()
    for file in sorted(home.rglob("*.py")):
        if file.relative_to(home).parts[0].removesuffix(".py") in _PRESENTATION:
            continue
        digest.update(str(file.relative_to(home)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _traffic_packages(experiment: Experiment) -> list[str]:
    """The installed packages of the traffic simulator; they may be missing, because resuming a run does not need it."""
    packages = declaration("mobility.kind", experiment.mobility.kind, "packages", ())
    return [name for name in packages if _is_installed(name)]


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def require_same_version(run: Path) -> None:
    """Refuse to resume a run that was started with another version of vefl_sim."""
    before = recorded_versions(run)
    then, here = before.get("packages", {}).get("vefl_sim", "unknown"), version("vefl_sim")
    sources = before.get("vefl_sim source", "unknown"), package_digest()
    if (then, sources[0]) != (here, sources[1]):
        raise NotResumable(
            f"{run} was started with vefl_sim {then} (source {sources[0]}), but this is {here} (source {sources[1]}), "
            "whose results may differ: resume it with that version, or run its experiment.toml again."
        )


def require_same(run: Path, identity: Identity) -> None:
    """Refuse to resume a run whose configuration or user-defined parts have changed."""
    before, now = recorded_versions(run), identity.versions
    if before.get("configuration") == now["configuration"]:
        return
    parts = [name for name, digest in now["parts"].items() if before.get("parts", {}).get(name) != digest]
    inputs = "its resolved.toml or its recording, map or initial model"
    what = f"the source of {', '.join(parts)}" if parts else inputs
    raise NotResumable(f"{run} cannot be resumed, because {what} has changed: restore it, or run the experiment again.")


def require_same_parts(run: Path, *parts: tuple[str, str]) -> None:
    """Refuse to import parts, given as (TOML key, `module:name`), whose sources the run was not started with.

    The networks of vefl_models may differ: a model outlives the version of vefl_sim that has trained it.
    """
    before = recorded_versions(run).get("parts", {})
    for key, name in parts:
        if not name.startswith("vefl_models.") and before.get(name) != part_digest(key, name):
            raise NotResumable(
                f"{run} was not made with the {name} that is found here, whose results may differ: restore its source, "
                "or name the folder that holds it with --parts."
            )


def library_notes(run: Path, identity: Identity) -> Iterator[str]:
    """Yield a note if library versions have changed since the run started, which may change the last digits."""
    before, now = recorded_versions(run), identity.versions
    then, here = before.get("packages", {}), now["packages"]
    changed = [f"{name} {then.get(name)} is now {here[name]}" for name in here if then.get(name) != here[name]]
    if before.get("python") != now["python"]:
        changed.append(f"Python {before.get('python')} is now {now['python']}")
    if changed:
        yield f"{', '.join(changed)}: the results may differ in the last digits from those of an uninterrupted run"


def recorded_versions(run: Path) -> dict[str, Any]:
    """The versions.json of a run, written when it started."""
    try:
        recorded: dict[str, Any] = read_json(run / "versions.json")
        tables = recorded.get("packages", {}), recorded.get("parts", {})
        if not all(isinstance(table, dict) for table in tables):
            raise ValueError
        return recorded
    except (OSError, ValueError, AttributeError):  # the last one: it is not even a table
        raise NotResumable(f"{run / 'versions.json'} is missing or damaged: run the experiment with --fresh.") from None
