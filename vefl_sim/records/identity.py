"""What identifies a run: digests of its configuration and source code, and the versions of libraries."""

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, Self

from vefl_sim.core.errors import CannotWrite, ExperimentError, NotResumable, first_line
from vefl_sim.core.files import cache_directory, ensure_writable, open_file, read_json, read_text, write_text
from vefl_sim.core.memory import require_memory
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.part_files import part_digest, what_is_computed
from vefl_sim.experiment.plugins import declaration, is_part, part_digests
from vefl_sim.experiment.toml import as_toml, resolved
from vefl_sim.experiment.unused_keys import without_unused_keys
from vefl_sim.mobility.recorded.playback import digest_of, recording_digest

_VERSIONED = ("vefl_sim", "simpy", "numpy", "scipy", "jax", "jaxlib", "flax", "pyarrow", "pandas")
_PRESENTATION = {"__main__", "cli", "analysis", "sweep"}
"""Packages that use simulations and cannot change them: editing these (a figure, say) requires no new runs."""

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
        traffic = declaration("mobility.kind", self.experiment.mobility.kind, "packages", ())
        flower = ("flwr",) if self.experiment.flower.strategy else ()
        packages = {}
        for name in (*_VERSIONED, *traffic, *flower):
            with suppress(metadata.PackageNotFoundError):  # resuming a run does not need the traffic simulator
                packages[name] = version(name)
        return {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "vefl_sim source": package_digest(),
            "packages": packages,
            "parts": self.parts,
            "configuration": self.configuration,
        }


def config_digest(experiment: Experiment) -> str:
    """The digest of an experiment's configuration, which names its runs."""
    return Identity(experiment).configuration


def mobility_digest(experiment: Experiment) -> str:
    """Digest of the file that `mobility.file` names; the traffic of a user may have any format."""
    kind, file = experiment.mobility.kind, experiment.mobility.file
    if is_part(kind) and Path(file).is_file():
        return digest_of(Path(file))
    digest = declaration("mobility.kind", kind, "file_digest", None) or recording_digest
    return str(digest(file))


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
    """Reset the keys that change no result, so that a run can be resumed after they were edited.

    Of files only the names count, not their folders; their contents are digested separately.
    """
    file, start = experiment.mobility.file, experiment.model.start
    neutral: dict[str, dict[str, Any]] = {
        "run": {"checkpoint_every": None, "keep_checkpoints": False, "watch": None},
        "learning": {"threads": None},
        "sumo": {"client": "libsumo"},
        "mobility": {"file": Path(file).name},
        "model": {"start": start and Path(start).name},
    }
    tables = {table: getattr(experiment, table).model_copy(update=keys) for table, keys in neutral.items()}
    return experiment.model_copy(update=tables)


@cache
def package_digest() -> str:
    """Digest of what the sources of vefl_sim compute, so that an edited copy never shows results of the unedited one.

    Parsing all sources takes half a second; so the digest of sources that were parsed before is kept in the cache.
    """
    home, sources = Path(__file__).parents[1], dict[str, bytes]()
    for file in sorted(home.rglob("*.py")):
        if file.relative_to(home).parts[0].removesuffix(".py") not in _PRESENTATION:
            sources[str(file.relative_to(home))] = file.read_bytes()
    kept = cache_directory(os.environ) / "sources" / _digest(sources)
    with suppress(OSError, ValueError):
        return read_text(kept)
    digest = _digest({name: what_is_computed(source) for name, source in sources.items()})
    if ensure_writable(kept.parent):
        with suppress(CannotWrite):
            write_text(kept, digest)
    return digest


def _digest(sources: Mapping[str, bytes]) -> str:
    return hashlib.sha256(b"\0".join(name.encode() + b"\0" + text for name, text in sources.items())).hexdigest()[:16]


def require_same_version(run: Path) -> None:
    """Refuse to resume a run that was started with another version of vefl_sim."""
    before = recorded_versions(run)
    then = before["packages"].get("vefl_sim", "unknown"), before.get("vefl_sim source", "unknown")
    here = version("vefl_sim"), package_digest()
    if then != here:
        raise NotResumable(
            f"{run} was started with vefl_sim {then[0]} (source {then[1]}), but this is {here[0]} (source {here[1]}), "
            "whose results may differ: resume it with that version, or run its experiment.toml again."
        )


def require_same(run: Path, identity: Identity) -> None:
    """Refuse to resume a run whose configuration or user-defined parts have changed."""
    before, now = recorded_versions(run), identity.versions
    if before.get("configuration") == now["configuration"]:
        return
    parts = [name for name, digest in now["parts"].items() if before["parts"].get(name) != digest]
    what = f"the source of {', '.join(parts)}" if parts else "its resolved.toml or its recording, map or initial model"
    raise NotResumable(f"{run} cannot be resumed, because {what} has changed: restore it, or run the experiment again.")


def require_same_parts(run: Path, *parts: tuple[str, str]) -> None:
    """Refuse to import parts, given as (TOML key, `module:name`), whose sources the run was not started with.

    The networks of vefl_models may differ: a model outlives the version of vefl_sim that has trained it.
    """
    before = recorded_versions(run)["parts"]
    for key, name in parts:
        if not name.startswith("vefl_models.") and before.get(name) != part_digest(key, name):
            raise NotResumable(
                f"{run} was not made with the {name} that is found here, whose results may differ: restore its source, "
                "or name the folder that holds it with --parts."
            )


def library_notes(run: Path, identity: Identity) -> Iterator[str]:
    """Yield a note if library versions have changed since the run started, which may change the last digits."""
    versions = recorded_versions(run), identity.versions
    then, here = (known["packages"] | {"Python": known.get("python")} for known in versions)
    changed = [f"{name} {then.get(name)} is now {here[name]}" for name in here if then.get(name) != here[name]]
    if changed:
        yield f"{', '.join(changed)}: the results may differ in the last digits from those of an uninterrupted run"


def recorded_versions(run: Path) -> dict[str, Any]:
    """The versions.json of a run, written when it started; tables that it lacks are empty."""
    with suppress(OSError, ValueError, TypeError):  # the last one: it is not even a table
        recorded: dict[str, Any] = {"packages": {}, "parts": {}} | read_json(run / "versions.json")
        if isinstance(recorded["packages"], dict) and isinstance(recorded["parts"], dict):
            return recorded
    raise NotResumable(f"{run / 'versions.json'} is missing or damaged: run the experiment with --fresh.")
