"""The runs that the episodes of an environment are made of: the same world, with another seed each time."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.fields import Settings, setting_texts
from vefl_sim.experiment.toml import load, with_settings
from vefl_sim.simulation.scenario import Scenario, build_scenario, make_scheme

_KEPT = 8


class Episodes:
    """Prepares a run for each episode; the last few are kept, as agents are often tried again in the same worlds."""

    def __init__(
        self, experiment: Experiment | str | Path, settings: Settings, check: Callable[[Experiment], None]
    ) -> None:
        """`check` refuses an experiment that the environment cannot use, of each episode."""
        own = load(experiment) if isinstance(experiment, (str, Path)) else experiment
        self.experiment, self._check = with_settings(own, *setting_texts(settings)), check
        self._kept: dict[str, Scenario] = {}
        check(self.experiment)

    def scenario(self, seed: int | None, rng: np.random.Generator, options: Mapping[str, Any] | None) -> Scenario:
        """The scenario of the next episode: with this seed, or with the next one of `rng`."""
        options = dict(options or {})
        settings = setting_texts(options.pop("set", {}))
        if options:
            raise BadInput(f'options: {next(iter(options))!r} is unknown: only "set" is known, a mapping of keys.')
        if any(text.partition("=")[0].strip() == "run.seed" for text in settings):
            raise BadInput("options: run.seed is the seed of an episode: call reset(seed=…).")
        number = int(rng.integers(2**31)) if seed is None else seed
        experiment = with_settings(self.experiment, *settings, f"run.seed={number}")
        self._check(experiment)
        name = experiment.model_dump_json()
        if name not in self._kept:
            if len(self._kept) == _KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[name] = build_scenario(experiment)
        return self._kept[name]


def require_rounds(experiment: Experiment) -> None:
    """Refuse an experiment whose scheme has no rounds to plan."""
    scheme = make_scheme(experiment)
    if scheme.buffer is not None or scheme.trains_centrally:
        raise BadInput(f'scheme.kind = "{experiment.scheme.kind}" has no rounds to plan: choose one with rounds.')


def require_same(before: Experiment, now: Experiment, *keys: str) -> None:
    """Refuse another value of keys that the spaces of an environment depend on."""
    for key in keys:
        table, _, name = key.partition(".")
        if getattr(getattr(before, table), name) != getattr(getattr(now, table), name):
            raise BadInput(f"options: {key} decides the spaces of the environment: make another one for another value.")
