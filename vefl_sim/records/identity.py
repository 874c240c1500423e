"""What a run is made with: its configuration, our sources, the user's parts, the libraries."""

import hashlib
import json
import platform
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from vefl_sim.core.errors import NotResumable
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import part_digests
from vefl_sim.experiment.toml import to_toml
from vefl_sim.experiment.unused_keys import without_ignored
from vefl_sim.mobility.recorded import recording
from vefl_sim.mobility.sumo import inputs

_VERSIONED = ("vefl_sim", "simpy", "numpy", "scipy", "jax", "jaxlib", "flax", "pyarrow", "pandas")


def config_digest(experiment: Experiment) -> str:
    """Digest of the resolved TOML, of this package, of the source of the user's own parts and of a recording or map.

    Keys that have no effect in the experiment are left out.
    """
    experiment = without_ignored(experiment)
    parts = json.dumps(part_digests(experiment), sort_keys=True)
    texts = [to_toml(_without_speed(experiment)), version("vefl_sim"), package_digest(), parts]
    if experiment.mobility.file:
        texts.append(mobility_digest(experiment))
    text = "\n".join(texts)
    return hashlib.sha256(text.encode()).hexdigest()


def mobility_digest(experiment: Experiment) -> str:
    """Digest of the recording or map that `mobility.file` names."""
    file = experiment.mobility.file
    return inputs.map_digest(file) if experiment.mobility.kind == "sumo" else recording.recording_digest(file)


def _without_speed(experiment: Experiment) -> Experiment:
    """Without keys that change no result: whoever changes them wants to go on all the same."""
    run = experiment.run.model_copy(update={"checkpoint_every": None})
    learning = experiment.learning.model_copy(update={"threads": None})
    sumo = experiment.sumo.model_copy(update={"client": "libsumo"})
    mobility = experiment.mobility.model_copy(
        update={"file": Path(experiment.mobility.file).name}
    )  # its content counts
    return experiment.model_copy(update={"run": run, "learning": learning, "sumo": sumo, "mobility": mobility})


_PRESENTATION = {"__main__", "cli", "analysis", "sweep"}
"""What stands above a simulation and cannot change it: a figure is drawn anew without running anything again."""


@cache
def package_digest() -> str:
    """Of our own sources: whoever edits an installed copy must not be shown the results of the old one."""
    home, digest = Path(__file__).parents[1], hashlib.sha256()
    for file in sorted(home.rglob("*.py")):
        if file.relative_to(home).parts[0].removesuffix(".py") in _PRESENTATION:
            continue
        digest.update(str(file.relative_to(home)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def versions(experiment: Experiment) -> dict[str, Any]:
    """What a run is made with."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "vefl_sim source": package_digest(),
        "packages": {name: version(name) for name in (*_VERSIONED, *_drives(experiment))},
        "parts": part_digests(experiment),
        "configuration": config_digest(experiment),
    }


def _drives(experiment: Experiment) -> list[str]:
    """SUMO, as far as it is here: whoever resumes a run does not need it."""
    if experiment.mobility.kind != "sumo":
        return []
    return [name for name in ("eclipse-sumo", "libsumo") if _is_here(name)]


def _is_here(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def require_same_version(run: Path) -> None:
    """Refuse to continue a run that was begun with another version of vefl_sim."""
    before = recorded_versions(run)
    then, here = before.get("packages", {}).get("vefl_sim", "unknown"), version("vefl_sim")
    sources = before.get("vefl_sim source", "unknown"), package_digest()
    if (then, sources[0]) != (here, sources[1]):
        raise NotResumable(
            f"{run} was begun with vefl_sim {then} (source {sources[0]}), and this is {here} (source {sources[1]}), "
            "which might go on differently: continue it with that version, or run its experiment.toml again."
        )


def require_same(run: Path, experiment: Experiment) -> None:
    """Refuse to continue a run whose configuration has changed, or a part of the user's in it."""
    before, now = recorded_versions(run), versions(experiment)
    if before.get("configuration") == now["configuration"]:
        return
    parts = [name for name, digest in now["parts"].items() if before.get("parts", {}).get(name) != digest]
    what = f"the source of {', '.join(parts)}" if parts else "its resolved.toml or the recording or map that it names"
    raise NotResumable(f"{run} cannot be continued, because {what} has changed: restore it, or run it again.")


def library_notes(run: Path, experiment: Experiment) -> Iterator[str]:
    """Libraries that have changed since the run began: it goes on, but perhaps not to the last bit."""
    before, now = recorded_versions(run), versions(experiment)
    then, here = before.get("packages", {}), now["packages"]
    changed = [f"{name} {then.get(name)} is now {here[name]}" for name in here if then.get(name) != here[name]]
    if before.get("python") != now["python"]:
        changed.append(f"Python {before.get('python')} is now {now['python']}")
    if changed:
        yield f"{', '.join(changed)}: the results may differ in the last digits from those of one piece"


def recorded_versions(run: Path) -> dict[str, Any]:
    """What was noted when the run began."""
    try:
        return dict(json.loads((run / "versions.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        raise NotResumable(f"{run / 'versions.json'} is missing or damaged: run the experiment with --fresh.") from None
