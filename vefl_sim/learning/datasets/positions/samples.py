"""Samples of next-position prediction: what a CV has just recorded, and where it is some seconds later.

Positions are relative to the current one and turned to the CV's heading: x is ahead, y is to the left. Lengths are in
units of 10 m and speeds in 10 m/s, so that the numbers are near 1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vefl_sim.learning.datasets.positions.tracks import Tracks

HISTORY_S = 4
"""A CV looks back this long: positions at 0, −1, …, −4 s."""
FEATURES = 3
"""Numbers per recorded second: x, y, speed."""
UNIT_M = 10.0
_PIECE = 4  # a track is cut into pieces of this many sample lengths


@dataclass(frozen=True)
class Samples:
    """Samples in the order of `Tracks`; those of one piece share positions, those of different pieces share none."""

    inputs: NDArray[np.float32]  # [samples, HISTORY_S + 1, FEATURES], the oldest first
    targets: NDArray[np.float32]  # [samples, 2], displacement x, y
    vehicle: NDArray[np.int64]  # [samples]
    piece: NDArray[np.int64]  # [samples]

    @classmethod
    def of(cls, tracks: Tracks, horizon_s: int) -> "Samples":
        """All samples with this horizon, one for each second of a track that has its past and its future in its piece.

        A piece is a stretch of 4·(HISTORY_S + horizon) seconds of a track, or what is left of the track.
        """
        length = HISTORY_S + horizon_s
        piece = _numbered(tracks.track, tracks.place // (_PIECE * length))
        headings = tracks.headings()
        first = np.arange(max(len(piece) - length, 0))
        now, last = first + HISTORY_S, first + length
        usable = (piece[first] == piece[last]) & np.isfinite(headings[now, 0])
        first, now, last = first[usable], now[usable], last[usable]
        past = first[:, None] + np.arange(HISTORY_S + 1)
        origin_m, ahead = tracks.xy_m[now], headings[now]
        inputs = np.concatenate(
            [_turned(tracks.xy_m[past] - origin_m[:, None], ahead[:, None]), tracks.speed_mps[past][..., None]], axis=2
        )
        targets = _turned(tracks.xy_m[last] - origin_m, ahead)
        return cls(_scaled(inputs), _scaled(targets), tracks.vehicle[now], piece[now])


def constant_velocity(inputs: NDArray[np.float32], horizon_s: int) -> NDArray[np.float32]:
    """Displacements of CVs that keep their speed and heading, [samples, 2], in the units of the targets."""
    ahead = inputs[:, -1, 2] * np.float32(horizon_s)
    return np.stack([ahead, np.zeros_like(ahead)], axis=1)


def _scaled(metres: NDArray[np.float64]) -> NDArray[np.float32]:
    return (metres / UNIT_M).astype(np.float32)


def _turned(way: NDArray[np.float64], ahead: NDArray[np.float64]) -> NDArray[np.float64]:
    """Vectors [..., 2] in the frame of a unit vector: the part along it, and that to its left."""
    along = (way * ahead).sum(axis=-1)
    left = way[..., 1] * ahead[..., 0] - way[..., 0] * ahead[..., 1]
    return np.stack([along, left], axis=-1)


def _numbered(track: NDArray[np.int64], part: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers 0, 1, … that change wherever one of the two does."""
    if not len(track):
        return track
    return np.cumsum(np.append(0, (np.diff(track) != 0) | (np.diff(part) != 0)))
