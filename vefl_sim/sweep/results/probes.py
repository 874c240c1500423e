"""Probes: short runs, one per variant of a scheme, that show whether the code has changed results.

A stored result cannot be compared with the code of today without hours of running. A probe can: it has the keys of the
result, but few CVs, few rounds and small data. What it did is kept in `probes.json` beside the results. Its figures
have two parts, each with a generation: the network side (counts, causes of loss, money, energy) and what is learnt
(accuracy, loss). Each probe notes which sources gave which generation; a result notes the sources that made it. Where
today's figures differ, `--accept` keeps them as the next generation, and results of an older one are stale.
"""

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import isclose, isnan
from pathlib import Path
from typing import Any

from vefl_sim.core.errors import BadInput
from vefl_sim.core.files import write_text
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.toml import validated
from vefl_sim.experiment.unused_keys import without_ignored
from vefl_sim.records.identity import versions
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.results.keys import Keys, flat, key_digest, keys_of, matches, toml_of
from vefl_sim.sweep.results.measurements import floats

FILE = "probes.json"
Generations = tuple[int, int]
"""Of the network side, and of what is learnt; 0 if the sources of a run were never probed."""

_SMALL = {
    "run.seed": 1,
    "run.rounds": 6,
    "mobility.max_speed_mps": 40.0,
    "traffic.mean_in_coverage": 16.0,
    "radio.max_tx_power_w": 0.005,
    "vefl.round_s": 5.0,
    "vefl.budget": 180.0,
    "vefl.max_local_iterations": 40,
    "scheme.selected": 4,
    "aggregation.sojourn_weight": 1.0,
    "data.kind": "signs",
    "data.train_samples": 2000,
    "data.test_samples": 100,
    "data.image_px": 16,
    "learning.kind": "jax",
    "learning.learning_rate": 0.002,  # small steps: rounding errors, which differ between machines, do not grow
    "learning.evaluate_every": 1,
}
"""Fast CVs with little power and a tight budget: some cannot take part, some are dropped, some updates are lost."""
_MERGED = "learning.iterations_per_step"
_ITERATIONS_PER_STEP = 8  # of a probe whose experiment merges iterations: a CV still takes several steps
_LEFT_OUT = ("run.duration_s", "traffic.arrivals_per_s", "data.")
_KEPT = ("data.partition", "data.shards_per_cv")  # of what is left out: other code, not another size
_SUMS = ("in_coverage", "eligible", "ordered", "delivered", "steps")
_MONEY = ("cost", "energy_j", "planned_cost", "weight_sum")
_LEARNT = ("accuracy", "loss")
_CLOSE = {"accuracy": 0.02, "loss": 1e-5}  # two of a hundred test samples; these depend on the machine's arithmetic
"""Losses differ by less than 10⁻⁶ between instruction sets (AVX, SSE4), and by more than this without μ = 0.01."""
_EQUAL = 1e-9  # relative, of all other floats
_MOST_BYTES = 10_000_000


@dataclass
class Probe:
    """One variant, what it did last, and which sources did so."""

    toml: str
    generations: Generations
    network: dict[str, Any]
    learning: dict[str, Any]
    sources: dict[str, Generations] = field(default_factory=dict)

    @cached_property
    def keys(self) -> dict[str, Any]:
        """Of the short run."""
        return flat(tomllib.loads(self.toml))

    @property
    def name(self) -> str:
        """For people: the scheme, and what is special about it."""
        return name_of(self.keys)

    def plain(self) -> dict[str, Any]:
        """As it is written."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass
class Probes:
    """All probes of a folder."""

    path: Path
    probes: list[Probe] = field(default_factory=list)

    @classmethod
    def in_folder(cls, folder: Path) -> "Probes":
        """Those that are written there; none if there is no file."""
        path = folder / FILE
        if not path.is_file():
            return cls(path)
        try:
            if path.stat().st_size > _MOST_BYTES:
                raise ValueError(f"it is larger than {_MOST_BYTES} bytes")
            return cls(path, [_probe(message) for message in json.loads(path.read_text(encoding="utf-8"))["probes"]])
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise BadInput(f"{path} cannot be read ({reason}): restore it from the repository.") from None

    def of(self, keys: Keys) -> Probe | None:
        """The probe of a result with these keys."""
        wanted = probe_keys(keys)
        return next((probe for probe in self.probes if matches(probe.keys, wanted)), None)

    def is_stale(self, keys: Keys, source: str, *, learning: bool) -> bool:
        """Whether the code has changed such results since these sources; `learning`: what is learnt counts, too."""
        probe = self.of(keys)
        if probe is None:
            return False
        made = probe.sources.get(source, (0, 0))
        return made[0] != probe.generations[0] or (learning and made[1] != probe.generations[1])

    def take(self, keys: Keys, run: Run, *, accept: bool) -> list[str]:
        """Compare a probe's run with what is written, and say what differs; new probes are added."""
        network, learning, source = network_figures(run), learning_figures(run), source_digest_of(run)
        probe = self.of(keys)
        if probe is None:
            self.probes.append(Probe(toml_of(keys), (1, 1), network, learning, {source: (1, 1)}))
            return []
        apart = [probe_differences(probe.network, network), probe_differences(probe.learning, learning)]
        if any(apart) and not accept:
            return [*apart[0], *apart[1]]
        first, second = (generation + bool(own) for generation, own in zip(probe.generations, apart, strict=True))
        probe.generations = probe.sources[source] = (first, second)
        probe.network, probe.learning = network if apart[0] else probe.network, learning if apart[1] else probe.learning
        return [*apart[0], *apart[1]]

    def write(self) -> None:
        """One line per figure, so that a change shows in a review."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, json.dumps({"probes": [probe.plain() for probe in self.probes]}, indent=1) + "\n")


def probe_keys(keys: Keys) -> dict[str, Any]:
    """The keys of the short run that stands for an experiment with these keys."""
    small = {key: value for key, value in keys.items() if key in _KEPT or not key.startswith(_LEFT_OUT)} | _SMALL
    return small | {_MERGED: _ITERATIONS_PER_STEP} if small.get(_MERGED, 1) > 1 else small


def probe_experiment(keys: Keys, file: str = "") -> Experiment:
    """The short run itself; `file` is that of its traffic with its folder, which keys do not have."""
    whole = {**keys, "run.name": f"probe-{key_digest(keys)}", "learning.threads": 1}
    return without_ignored(validated(tomllib.loads(toml_of(whole | ({"mobility.file": file} if file else {})))))


def variants(experiments: Iterable[Experiment]) -> list[tuple[dict[str, Any], Experiment]]:
    """The probes of many experiments, each once: their keys, and the short runs."""
    found: dict[str, tuple[dict[str, Any], Experiment]] = {}
    for experiment in experiments:
        keys = probe_keys(keys_of(experiment))
        if (digest := key_digest(keys)) not in found:
            found[digest] = keys, probe_experiment(keys, experiment.mobility.file)
    return [*found.values()]


def name_of(keys: Keys) -> str:
    """What is not default in a probe, but for what all probes have."""
    plain = probe_keys(keys_of(validated({"run": {"name": "probe"}})))
    message = [f"{key} = {value}" for key, value in keys.items() if plain.get(key) != value and key != "scheme.kind"]
    return ", ".join([str(keys.get("scheme.kind")), *message])


def network_figures(run: Run) -> dict[str, Any]:
    """Counts, causes of loss, money and energy, round by round."""
    rounds, summary = run.rounds, run.summary
    counts = {name: [int(value) for value in rounds[name]] for name in _SUMS}
    money = {name: [float(value) for value in rounds[name]] for name in _MONEY}
    slots = int(run.vehicles["tx_slots"].sum())
    return counts | money | {"lost": summary["updates_lost"], "tx_slots": slots}


def learning_figures(run: Run) -> dict[str, Any]:
    """Accuracy and loss, round by round."""
    rounds = run.rounds
    return {name: [None if isnan(value) else float(value) for value in floats(rounds[name])] for name in _LEARNT}


def probe_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """One sentence for each figure that is not the same."""
    return [
        f"{name} was {_told(before.get(name))} and is {_told(now.get(name))}"
        for name in dict.fromkeys([*before, *now])
        if not _same(before.get(name), now.get(name), _CLOSE.get(name, _EQUAL))
    ]


def source_digest(noted: Mapping[str, Any]) -> str:
    """Of our sources and of the parts in use, from the versions.json of a run."""
    text = json.dumps([noted.get("vefl_sim source"), noted.get("parts")], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def source_digest_of(run: Run) -> str:
    """The same of a run."""
    return source_digest(json.loads((run.path / "versions.json").read_text(encoding="utf-8")))


def source_digest_now(experiment: Experiment) -> str:
    """The same of what a run would be made with now."""
    return source_digest(versions(experiment))


def _probe(message: Any) -> Probe:
    """What is written of a probe; raises ValueError, KeyError or TypeError if it is something else."""
    tables = [_table(message, name) for name in ("network", "learning", "sources")]
    sources = {source: _pair(pair) for source, pair in tables[2].items()}
    probe = Probe(str(message["toml"]), _pair(message["generations"]), tables[0], tables[1], sources)
    _ = probe.keys
    return probe


def _table(message: Any, name: str) -> dict[str, Any]:
    table = message[name]
    if not isinstance(table, dict):
        raise ValueError(f"{name} is no table")
    return table


def _pair(message: Any) -> Generations:
    if not (isinstance(message, list) and len(message) == 2 and all(type(one) is int and one >= 0 for one in message)):
        raise ValueError("generations are no pairs of whole numbers")
    return message[0], message[1]


def _same(before: Any, now: Any, close: float) -> bool:
    if isinstance(before, list) and isinstance(now, list):
        return len(before) == len(now) and all(_same(b, n, close) for b, n in zip(before, now, strict=True))
    if isinstance(before, dict) and isinstance(now, dict):
        return before == now
    if isinstance(before, float) and isinstance(now, float):
        return isclose(before, now, rel_tol=close, abs_tol=close)
    return bool(before == now)


def _told(value: Any) -> str:
    text = str(value)
    return text if len(text) < 60 else text[:57] + "…"
