"""Where a run comes from: digests, versions, seeds, the command that repeats it, and how long each part took."""

import shlex
from collections.abc import Iterator
from typing import Any

from vefl_sim.analysis.report.markup import html, pairs, table
from vefl_sim.analysis.report.source import Source
from vefl_sim.core.errors import printable

_PARTS = {
    "plan": "planning the rounds",
    "train": "local training",
    "evaluate": "evaluating the model",
    "checkpoint": "writing checkpoints",
}


def provenance_html(source: Source) -> str:
    """Everything that identifies the run, and its wall time by part."""
    commands = "\n".join(commands_of(source))
    return (
        f"<div class='columns'><div><h3>Identity</h3>{pairs(_identity(source))}</div>"
        f"<div><h3>Wall time</h3>{_times(source)}</div></div>"
        f"<h3>To repeat it</h3><pre><code>{html(commands)}</code></pre>"
        f"<details><summary>Versions of Python and libraries</summary><div>{pairs(_versions(source))}</div></details>"
    )


def commands_of(source: Source) -> Iterator[str]:
    """The commands that repeat the run, as it was started and from its own directory."""
    path = shlex.quote(str(source.run.path))
    settings = source.versions.get("set", [])
    chosen = [f"--set {shlex.quote(str(setting))}" for setting in settings] if isinstance(settings, list) else []
    if chosen:
        yield f"# started with the options {printable(' '.join(chosen))}"  # one line: none of it can become a command
    yield f"python -m vefl_sim {path}/resolved.toml --fresh    # the same content digest"
    yield f"python -m vefl_sim verify {path}"


def _identity(source: Source) -> Iterator[tuple[str, object]]:
    yield "run", source.run.path.name
    yield "state", source.state
    yield "content digest", source.summary.get("content_digest") or "none before the run is done"
    yield "configuration digest", source.versions.get("configuration", "unknown")
    yield "seed", source.experiment.run.seed
    for name, digest in dict(source.versions.get("parts", {})).items():
        yield f"part {name}", digest


def _versions(source: Source) -> Iterator[tuple[str, object]]:
    versions = source.versions
    for name in ("python", "machine", "vefl_sim source"):
        yield name, versions.get(name, "unknown")
    yield from dict(versions.get("packages", {})).items()


def _times(source: Source) -> str:
    """Wall-clock seconds of each part of the run, with the rest."""
    rows = [(name, f"{seconds:,.1f} s", _share(seconds, total)) for name, seconds, total in _parts(source)]
    return table(("part", "wall time", "share"), rows, label="Wall time by part") if rows else "<p>Not recorded.</p>"


def _parts(source: Source) -> Iterator[tuple[str, float, float]]:
    """Name, seconds and the seconds of the whole run."""
    summary: dict[str, Any] = source.summary
    timings = source.table("timings")
    rounds_s, prepare_s = float(summary.get("wall_s") or 0.0), float(summary.get("prepare_s") or 0.0)
    if not rounds_s:
        return
    by_part = {} if timings is None else timings.groupby("what")["wall_s"].sum().to_dict()
    total = rounds_s + prepare_s
    yield "preparing traffic, data and model", prepare_s, total
    for what, seconds in by_part.items():
        yield _PARTS.get(str(what), str(what)), float(seconds), total
    yield "network, compilation and the rest", max(rounds_s - sum(map(float, by_part.values())), 0.0), total
    yield "together", total, total


def _share(seconds: float, total: float) -> str:
    return f"{seconds / total:.0%}" if total else "–"
