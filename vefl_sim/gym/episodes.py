"""The runs that the episodes of an environment are made of: the same world, with another seed each time."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.fields import Settings, setting_texts
from vefl_sim.experiment.toml import load, with_settings
from vefl_sim.simulation.scenario import Scenario, build_scenario

_KEPT = 8


class Episodes:
    """Prepares a run for each episode; the last few are kept, as agents are often tried again in the same worlds."""

    def __init__(self, experiment: Experiment | str | Path, settings: Settings) -> None:
        own = load(experiment) if isinstance(experiment, (str, Path)) else experiment
        self.experiment = with_settings(own, *setting_texts(settings))
        self._kept: dict[str, Scenario] = {}

    def scenario(self, seed: int | None, rng: np.random.Generator, options: Mapping[str, Any] | None) -> Scenario:
        """The scenario of the next episode: with this seed, or with the next one of `rng`."""
        options = dict(options or {})
        settings = options.pop("set", {})
        if options:
            raise BadInput(f'options: {next(iter(options))!r} is unknown: only "set" is known, a mapping of keys.')
        number = int(rng.integers(2**31)) if seed is None else seed
        experiment = with_settings(self.experiment, *setting_texts(settings), f"run.seed={number}")
        name = experiment.model_dump_json()
        if name not in self._kept:
            if len(self._kept) == _KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[name] = build_scenario(experiment)
        return self._kept[name]
