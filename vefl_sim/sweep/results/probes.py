"""Probes: short runs, one per variant of a scheme, that show whether the code has changed results.

Checking a stored result against the current code would take hours of running. A probe takes seconds: it has the keys of
the result, but few CVs, few rounds and little data. Its figures are stored in `probes.json` beside the results, in two
parts, each with a generation: the network side (counts, causes of loss, money, energy) and what is learnt (accuracy,
loss). Each probe lists which sources gave which generation; a result contains the digest of the sources that made it.
Where the figures of the current code differ, `--accept` stores them as the next generation, and results of an older
generation are stale.
"""

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import isclose
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic import Field, TypeAdapter

from vefl_sim.core.errors import BadInput, first_line
from vefl_sim.core.files import read_file, write_text
from vefl_sim.experiment.complaints import shortened
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.toml import validated
from vefl_sim.experiment.unused_keys import without_unused_keys
from vefl_sim.records.identity import recorded_versions
from vefl_sim.records.run_directory import Run
from vefl_sim.sweep.points import flat
from vefl_sim.sweep.results.keys import Keys, key_digest, keys_of, matches, toml_of

FILE = "probes.json"
Generations = tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]]
"""Generations of the network side and of what is learnt; 0 if the sources of a run were never probed."""

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
_SMALL_WHERE_LARGER = {
    "learning.iterations_per_step": 8,  # so that a CV takes several steps
    "data.holders": 100,  # more than the CVs that come in six rounds
}
"""Of a probe whose experiment sets more than one of them."""
_LEFT_OUT = ("run.duration_s", "traffic.arrivals_per_s", "data.", "model.start")
_KEPT = ("data.partition", "data.shards_per_cv")  # exceptions to _LEFT_OUT: they select code, not sizes
_NEEDS_NUMBERS = ("data.partition", "learning.loss", "model.factory")  # left out unless targets are classes
_SUMS = ("in_coverage", "eligible", "ordered", "delivered", "steps")
_MONEY = ("cost", "energy_j", "planned_cost", "weight_sum")
_LEARNT = ("accuracy", "loss")
_TOLERANCES = {"accuracy": 0.02, "loss": 1e-5}  # two of 100 test samples; arithmetic differs between machines
"""Losses differ by less than 10⁻⁶ between instruction sets (AVX, SSE4), and by more than 10⁻⁵ without μ = 0.01."""
_TOLERANCE = 1e-9  # relative, for all other floats
_MAX_BYTES = 10_000_000


@pydantic.dataclasses.dataclass
class Probe:
    """One variant, its accepted figures, and which sources gave which generation."""

    toml: str
    generations: Generations
    network: dict[str, Any]
    learning: dict[str, Any]
    sources: dict[str, Generations] = field(default_factory=dict)

    @cached_property
    def keys(self) -> dict[str, Any]:
        """The keys of the short run."""
        return flat(tomllib.loads(self.toml))


_PROBES = TypeAdapter(dict[Literal["probes"], list[Probe]])


@dataclass
class Probes:
    """All probes of a folder of results."""

    path: Path
    probes: list[Probe] = field(default_factory=list)

    @classmethod
    def in_folder(cls, folder: Path) -> "Probes":
        """Read the probes of a folder; there are none if it has no file of probes."""
        path = folder / FILE
        if not path.is_file():
            return cls(path)
        try:
            probes = _PROBES.validate_json(read_file(path, _MAX_BYTES), strict=True)["probes"]
            for probe in probes:
                _ = probe.keys
            return cls(path, probes)
        except (OSError, ValueError, KeyError) as error:
            raise BadInput(f"{path} cannot be read ({first_line(error)}): restore it from the repository.") from None

    def of(self, keys: Keys) -> Probe | None:
        """The probe of a result with these keys; None if there is none."""
        wanted = probe_keys(keys)
        return next((probe for probe in self.probes if matches(probe.keys, wanted)), None)

    def is_stale(self, keys: Keys, source: str, *, learning: bool) -> bool:
        """Whether results of these sources are of an older generation; `learning`: what is learnt counts, too."""
        probe = self.of(keys)
        if probe is None:
            return False
        network, learnt = probe.sources.get(source, (0, 0))
        return network != probe.generations[0] or (learning and learnt != probe.generations[1])

    def compare(self, keys: Keys, run: Run, *, accept: bool) -> list[str]:
        """Compare the run of a probe with the stored figures, and return the differences; a new probe is added.

        If nothing differs, or with `accept`, the sources of the run are added to the probe.
        """
        network, learning = network_figures(run), learning_figures(run)
        source = source_digest(recorded_versions(run.path))
        probe = self.of(keys)
        if probe is None:
            self.probes.append(Probe(toml_of(keys), (1, 1), network, learning, {source: (1, 1)}))
            return []
        differ = probe_differences(probe.network, network)
        differ_learnt = probe_differences(probe.learning, learning)
        if accept or not (differ or differ_learnt):
            first, second = probe.generations
            probe.generations = probe.sources[source] = (first + bool(differ), second + bool(differ_learnt))
            probe.network = network if differ else probe.network
            probe.learning = learning if differ_learnt else probe.learning
        return differ + differ_learnt

    def adopt(self, other: "Probes") -> list[str]:
        """Take over which sources gave the latest figures of another store; returns a sentence for each difference.

        Generations are counters of one store, so only the sources of its latest one are taken over, as of ours, and
        only for probes with the same figures. Probes that we do not have are added.
        """
        differ = []
        for probe in other.probes:
            current = [source for source, generations in probe.sources.items() if generations == probe.generations]
            own = next((one for one in self.probes if matches(one.keys, probe.keys)), None)
            if own is None:
                sources = dict.fromkeys(current, (1, 1))
                self.probes.append(Probe(probe.toml, (1, 1), probe.network, probe.learning, sources))
            elif found := probe_differences(own.network | own.learning, probe.network | probe.learning):
                differ.append(f"the probe {probe_name(probe.keys)} gave other figures there: {'; '.join(found)}")
            else:
                own.sources |= dict.fromkeys(current, own.generations)
        return differ

    def write(self) -> None:
        """Write the file, with one line per value, so that changes are visible in a review."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, json.dumps({"probes": [asdict(probe) for probe in self.probes]}, indent=1) + "\n")


def probe_keys(keys: Keys) -> dict[str, Any]:
    """The keys of the short run that represents an experiment with these keys."""
    kept = {key: value for key, value in keys.items() if key in _KEPT or not key.startswith(_LEFT_OUT)}
    numbers = () if keys.get("learning.loss", "cross-entropy") == "cross-entropy" else _NEEDS_NUMBERS
    larger = {key: value for key, value in _SMALL_WHERE_LARGER.items() if (keys.get(key) or 1) > 1}
    return {key: value for key, value in kept.items() if key not in numbers} | _SMALL | larger


def probe_experiment(keys: Keys, file: str = "") -> Experiment:
    """The experiment of the short run; `file` is the path of its recording or map, of which keys have only the name."""
    complete = {**keys, "run.name": f"probe-{key_digest(keys)}", "learning.threads": 1}
    return without_unused_keys(validated(tomllib.loads(toml_of(complete | ({"mobility.file": file} if file else {})))))


def probes_for(experiments: Iterable[Experiment]) -> list[tuple[dict[str, Any], Experiment]]:
    """The probes of many experiments, each once: keys and experiment of the short run."""
    probes: dict[str, tuple[dict[str, Any], Experiment]] = {}
    for experiment in experiments:
        keys = probe_keys(keys_of(experiment))
        if (digest := key_digest(keys)) not in probes:
            probes[digest] = keys, probe_experiment(keys, experiment.mobility.file)
    return [*probes.values()]


def probe_name(keys: Keys) -> str:
    """The scheme of a probe, and the keys in which it differs from the probe of a default experiment."""
    default = probe_keys(keys_of(validated({"run": {"name": "probe"}})))
    others = [f"{key} = {value}" for key, value in keys.items() if default.get(key) != value and key != "scheme.kind"]
    return ", ".join([str(keys.get("scheme.kind")), *others])


def network_figures(run: Run) -> dict[str, Any]:
    """Counts, causes of loss, money and energy, round by round."""
    rounds, summary = run.rounds, run.summary
    counts = {name: rounds[name].astype(int).tolist() for name in _SUMS}
    money = {name: rounds[name].astype(float).tolist() for name in _MONEY}
    return counts | money | {"lost": summary["updates_lost"], "tx_slots": int(run.vehicles["tx_slots"].sum())}


def learning_figures(run: Run) -> dict[str, Any]:
    """Accuracy and loss, round by round; None where the model was not evaluated."""
    learnt = run.rounds[[*_LEARNT]].astype("Float64").astype(object)
    return {name: learnt[name].where(learnt[name].notna(), None).tolist() for name in _LEARNT}


def probe_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """One sentence for each figure that differs by more than its tolerance."""
    return [
        f"{name} was {shortened(str(before.get(name)))} and is {shortened(str(now.get(name)))}"
        for name in dict.fromkeys([*before, *now])
        if not _same(before.get(name), now.get(name), _TOLERANCES.get(name, _TOLERANCE))
    ]


def source_digest(recorded: Mapping[str, Any]) -> str:
    """Digest of our sources and of the parts in use, from the versions that a run records."""
    text = json.dumps([recorded.get("vefl_sim source"), recorded.get("parts")], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _same(before: Any, now: Any, tolerance: float) -> bool:
    if isinstance(before, list) and isinstance(now, list):
        return len(before) == len(now) and all(_same(b, n, tolerance) for b, n in zip(before, now, strict=True))
    if isinstance(before, dict) and isinstance(now, dict):
        return Counter(before) == Counter(now)  # a missing count is 0
    if isinstance(before, float) and isinstance(now, float):
        return isclose(before, now, rel_tol=tolerance, abs_tol=tolerance)
    return bool(before == now)
