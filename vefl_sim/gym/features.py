"""What an agent sees of a round: a table of CVs with fixed shape, the mask of its rows that hold a CV, and the server.

Every feature is a number with an interval; the interval becomes [−1, 1], and values outside are clipped to its ends.
The environment and the scheme of a trained agent use this same code.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import Floats, Ints
from vefl_sim.core.clock import to_s
from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.schemes.observation import Observation
from vefl_sim.schemes.sla import column

Seen = dict[str, NDArray[np.generic]]
"""`cvs` (rows × features), `mask` (rows) and `server`: what a policy is called with."""


@dataclass(frozen=True)
class Feature:
    """A number that an agent sees, and the interval that becomes [−1, 1]."""

    of: Callable[[Observation], Floats | Ints | float]
    interval: tuple[float, float]

    def scaled(self, observation: Observation) -> Floats:
        """The number, from the interval to [−1, 1]; infinite values are clipped, too."""
        low, high = self.interval
        width = high - low if high > low else 1.0
        scaled: Floats = np.clip((np.asarray(self.of(observation), np.float64) - low) / width * 2 - 1, -1.0, 1.0)
        return scaled


def cv_features(experiment: Experiment) -> dict[str, Feature]:
    """The features of a CV, by name, with one value for each CV of an observation."""
    e, sla = experiment, experiment.sla
    slots = e.round_ns / e.slots.slot_ns

    def agreed(term: str) -> Callable[[Observation], Floats]:
        return lambda observation: column(observation.snapshot.agreements, term)

    return {
        "distance": Feature(lambda o: o.snapshot.distance_m, (0.0, e.radio.coverage_radius_m)),
        "sojourn": Feature(lambda o: o.snapshot.sojourn_s, (0.0, 4 * e.vefl.round_s)),
        "snr": Feature(mean_snr_db, (-20.0, 40.0)),
        "worst_slots": Feature(lambda o: o.worst_slots, (0.0, slots)),
        "iterations": Feature(lambda o: o.problem().most, (0.0, float(e.vefl.max_local_iterations))),
        "samples": Feature(lambda o: np.log10(1 + o.snapshot.samples), (0.0, 4.0)),
        "price": Feature(agreed("price_per_joule"), sla.price_per_joule),
        "fee": Feature(agreed("base_fee"), sla.base_fee),
        "cpu": Feature(agreed("cpu_max_hz"), sla.cpu_max_hz),
        "success": Feature(lambda o: o.snapshot.success, (0.0, 1.0)),
    }


def server_features(experiment: Experiment) -> dict[str, Feature]:
    """The features of the server, by name."""
    budget = max(experiment.vefl.budget, 1e-9)
    return {
        "time": Feature(lambda o: to_s(o.snapshot.time_ns), (0.0, to_s(experiment.duration_ns))),
        "budget": Feature(lambda o: o.constants.budget, (0.0, 2 * budget)),
        "accuracy": Feature(lambda o: o.snapshot.last.accuracy, (0.0, 1.0)),
        "cost": Feature(lambda o: o.snapshot.last.paid, (0.0, budget)),
        "delivered": Feature(lambda o: o.snapshot.last.delivered_share, (0.0, 1.0)),
    }


def mean_snr_db(observation: Observation) -> Floats:
    """SNR in dB without fading, all antennas combined, full power on one pRB."""
    link = observation.constants.link
    snr = link.max_power_w * link.antennas * observation.snapshot.snr_per_watt
    decibels: Floats = 10 * np.log10(np.maximum(snr, 1e-30))
    return decibels


@dataclass(frozen=True)
class View:
    """Turns observations into tables of fixed shape."""

    rows: int  # max_cvs
    cvs: dict[str, Feature]
    server: dict[str, Feature]

    @classmethod
    def of(cls, experiment: Experiment, rows: int, features: Iterable[str] | None = None) -> "View":
        """The view of an experiment; `features` are the names of those of a CV that are shown, in this order."""
        known = cv_features(experiment)
        names = [*known] if features is None else [*features]
        if unknown := [name for name in names if name not in known]:
            raise BadInput(f"features: {unknown[0]!r} is none of {', '.join(known)}.")
        return cls(rows, {name: known[name] for name in names}, server_features(experiment))

    def place(self, held: Ints, observation: Observation) -> Ints:
        """The CV of each row, −1 for none: a CV keeps the row that it holds, the others take the first free ones.

        If there are more CVs than rows, those with the longest sojourn bounds are shown, and of equal ones the first.
        """
        cvs = observation.cv
        if len(cvs) > self.rows:
            longest = np.lexsort((cvs, -observation.snapshot.sojourn_s))[: self.rows]
            cvs = np.sort(cvs[longest])
        placed = np.where(np.isin(held, cvs), held, -1)
        new = cvs[~np.isin(cvs, held)]
        placed[np.flatnonzero(placed < 0)[: len(new)]] = new
        return placed

    def seen(self, observation: Observation, placed: Ints) -> Seen:
        """What an agent sees: rows without a CV are zero."""
        table = np.zeros((self.rows, len(self.cvs)), np.float32)
        rows = np.flatnonzero(placed >= 0)
        at = np.searchsorted(observation.cv, placed[rows])
        for number, feature in enumerate(self.cvs.values()):
            table[rows, number] = feature.scaled(observation)[at]
        server = [float(feature.scaled(observation)) for feature in self.server.values()]
        return {"cvs": table, "mask": (placed >= 0).astype(np.int8), "server": np.array(server, np.float32)}
