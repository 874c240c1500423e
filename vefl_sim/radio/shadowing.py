"""The large-scale channel of every CV: line of sight and shadowing, which change with the distance driven.

Both come from Gaussian processes with exponential correlation (TR 38.901, table 7.5-6): a CV has line of
sight while Φ(g) < P_LOS(d), with g correlated over 50 m. Its shadowing has a standard deviation of 4 dB, correlated
over 37 m, with line of sight, and of 6 dB, correlated over 50 m, without.

With `radio.large_scale = "round"` the processes go on in the same way, but path loss, line of sight and shadowing of a
CV in coverage are those of its position and its Gaussians at the start of the round, or, if it enters later, in the
first scene in which it is in coverage.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.arrays import Floats
from vefl_sim.core.state import State, from_state, state_of
from vefl_sim.experiment.experiment import RadioTable
from vefl_sim.mobility.scene import Scene
from vefl_sim.radio.uma import MAX_DISTANCE_M, los_probability, pathloss_db

SHADOWING_DB = {True: 4.0, False: 6.0}
CORRELATION_M = {True: 37.0, False: 50.0}
LOS_CORRELATION_M = 50.0
_CORRELATIONS_M = np.array([LOS_CORRELATION_M, CORRELATION_M[True], CORRELATION_M[False]])  # columns of _Track.normal


@dataclass
class _Track:
    """Positions and unit Gaussians of the vehicles of one scene, one row each.

    The columns of `normal`: line of sight, shadowing with line of sight, shadowing without.
    """

    vehicle: NDArray[np.int64]
    x_m: Floats
    y_m: Floats
    normal: Floats  # shape (vehicles, 3)

    @classmethod
    def empty(cls) -> "_Track":
        """The track of a scene without vehicles."""
        return cls(np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty((0, 3)))

    def where(self, chosen: NDArray[np.bool_]) -> "_Track":
        """A copy of the chosen rows."""
        return _Track(self.vehicle[chosen], self.x_m[chosen], self.y_m[chosen], self.normal[chosen])

    def with_rows_of(self, other: "_Track") -> "_Track":
        """A copy in which vehicles that the other track has, too, are as they are there."""
        copy = self.where(np.ones(len(self.vehicle), np.bool_))
        here, there = _rows_in_both(self.vehicle, other.vehicle)
        copy.x_m[here], copy.y_m[here], copy.normal[here] = other.x_m[there], other.y_m[there], other.normal[there]
        return copy


class LossParts(NamedTuple):
    """What the loss of the vehicles of one scene is made of, one entry each."""

    distance_m: Floats
    los: NDArray[np.bool_]
    shadowing_db: Floats  # shape (2, vehicles): without and with line of sight

    @classmethod
    def of(cls, track: _Track, radio: RadioTable) -> "LossParts":
        """The parts for these positions and Gaussians."""
        d2d = np.minimum(np.hypot(track.x_m, track.y_m), MAX_DISTANCE_M)  # vehicles farther away are never served
        if radio.los == "random":
            from scipy.special import ndtr  # slow to import, and not needed to read an experiment

            los = ndtr(track.normal[:, 0]) < los_probability(d2d, h_ut_m=radio.cv_height_m)
        else:
            los = np.full(len(d2d), radio.los == "always")
        shadowing_db = SHADOWING_DB[False] * track.normal[:, 2], SHADOWING_DB[True] * track.normal[:, 1]
        return cls(d2d, los, np.array(shadowing_db) if radio.shadowing == "correlated" else np.zeros((2, len(d2d))))

    def loss_db(self, radio: RadioTable) -> Floats:
        """Path loss plus shadowing in dB, shape (vehicles,)."""
        loss_db: Floats = pathloss_db(
            self.distance_m,
            los=self.los,
            carrier_ghz=radio.carrier_ghz,
            h_bs_m=radio.gnb_height_m,
            h_ut_m=radio.cv_height_m,
        )
        loss_db += np.where(self.los, self.shadowing_db[1], self.shadowing_db[0])
        return loss_db


class LargeScale:
    """Path loss with shadowing, constant between two scenes, or during a round."""

    def __init__(self, radio: RadioTable, rng: np.random.Generator) -> None:
        self._radio = radio
        self._rng = rng
        self.holds = radio.large_scale == "round"
        self._track = _Track.empty()
        self._held = _Track.empty()  # CVs in coverage, as they were when the round started or when they entered
        self._loss_and_los: tuple[Floats, NDArray[np.bool_]] | None = None  # of the current scene, once asked for

    def move(self, scene: Scene) -> None:
        """Update to the next scene. Draws for all its vehicles, so no value depends on which CVs are looked up."""
        track = self._track
        fresh = self._rng.standard_normal((len(scene.vehicle), 3))
        known, old = _rows_in_both(scene.vehicle, track.vehicle)
        driven = np.hypot(scene.x_m[known] - track.x_m[old], scene.y_m[known] - track.y_m[old])
        correlation = np.exp(-driven[:, None] / _CORRELATIONS_M)
        fresh[known] = correlation * track.normal[old] + np.sqrt(1 - correlation**2) * fresh[known]
        self._track, self._loss_and_los = _Track(scene.vehicle, scene.x_m, scene.y_m, fresh), None
        if self.holds:
            self._hold_cvs_in_coverage()

    def begin_round(self) -> None:
        """If the channel is held during rounds: from now on CVs are as in the present scene, until the next round."""
        if self.holds:
            self._held, self._loss_and_los = _Track.empty(), None
            self._hold_cvs_in_coverage()

    def _hold_cvs_in_coverage(self) -> None:
        """Hold CVs that are in coverage and not held yet as they are now; release those that have left."""
        covered = np.hypot(self._track.x_m, self._track.y_m) <= self._radio.coverage_radius_m
        self._held = self._track.where(covered).with_rows_of(self._held)

    def state(self) -> State:
        """State for a checkpoint: the Gaussians of all vehicles, what is held, and the generator of the next ones."""
        return {"rng": self._rng.bit_generator.state, "track": state_of(self._track), "held": state_of(self._held)}

    def restore(self, state: State) -> None:
        """Restore the Gaussians, what is held, and the generator from a checkpoint."""
        self._rng.bit_generator.state = state["rng"]
        self._track, self._held = from_state(_Track, state["track"]), from_state(_Track, state["held"])
        self._loss_and_los = None

    def _evaluate(self) -> tuple[Floats, NDArray[np.bool_]]:
        """Path loss plus shadowing in dB, and whether there is line of sight, of all vehicles of the scene.

        Many scenes pass while nobody sends, so this waits until somebody asks.
        """
        if self._loss_and_los:
            return self._loss_and_los
        parts = self._parts()
        self._loss_and_los = parts.loss_db(self._radio), parts.los
        return self._loss_and_los

    def _parts(self) -> LossParts:
        """What the loss of each vehicle of the scene is made of; CVs that are held are as they were then."""
        return LossParts.of(self._track.with_rows_of(self._held) if self.holds else self._track, self._radio)

    def loss_db(self, cvs: NDArray[np.int64]) -> Floats:
        """Path loss plus shadowing in dB of these CVs, all of which must be in the scene."""
        return self._evaluate()[0][np.searchsorted(self._track.vehicle, cvs)]

    def line_of_sight(self, cvs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each of these CVs has line of sight."""
        return self._evaluate()[1][np.searchsorted(self._track.vehicle, cvs)]


def _rows_in_both(these: NDArray[np.int64], those: NDArray[np.int64]) -> tuple[Any, Any]:
    """The rows in both of the vehicles that two scenes share; all rows if the vehicles are the same, as mostly."""
    if np.array_equal(these, those):
        return slice(None), slice(None)
    _, here, there = np.intersect1d(these, those, assume_unique=True, return_indices=True)
    return here, there
