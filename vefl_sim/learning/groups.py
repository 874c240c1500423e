"""What is dealt out whole: single samples, or groups of samples that nobody may share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import ExperimentError

Hands = list[list[int]]
"""The lots of each owner."""


@dataclass(frozen=True)
class Lots:
    """Samples in groups; without groups, every sample is a lot of its own."""

    labels: NDArray[np.int32]  # [lots]; a group counts for the class of its first sample
    sizes: NDArray[np.int64]  # [lots], samples in each
    of_sample: NDArray[np.int64]  # [samples], the lot of each

    @classmethod
    def of(cls, labels: NDArray[np.int32], groups: NDArray[np.int64] | None = None) -> "Lots":
        """Lots of samples with these labels; equal numbers in `groups` belong together."""
        if groups is None:
            return cls(labels, np.ones(len(labels), np.int64), np.arange(len(labels)))
        _, first, of_sample, sizes = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
        return cls(labels[first], sizes, of_sample)

    def cut(self, lots: NDArray[np.int64], places: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Consecutive pieces of `lots`, cut as near as whole lots allow to these numbers of samples."""
        sizes = self.sizes[lots]
        return np.split(lots, np.searchsorted(np.cumsum(sizes) - sizes / 2, places))

    def top_up(self, hands: Hands, least: int, rng: np.random.Generator) -> None:
        """Give every owner with fewer than `least` samples random lots of whoever holds most (ties: the first).

        A donor keeps the minimum itself; who holds most but has no lot small enough for that is passed over.
        Single samples can always be topped up if there are enough of them, and so can groups of which each has the
        minimum; else a minimum that can be met may be missed, and is then refused.
        """
        sizes = self.sizes.tolist()
        held = [sum(sizes[lot] for lot in hand) for hand in hands]
        for poor, hand in enumerate(hands):
            while held[poor] < least:
                rich, place = self._gift(hands, held, least, rng)
                lot = hands[rich].pop(place)
                hand.append(lot)
                held[rich] -= sizes[lot]
                held[poor] += sizes[lot]

    def _gift(self, hands: Hands, held: Sequence[int], least: int, rng: np.random.Generator) -> tuple[int, int]:
        """(donor, place of the lot in its hand)."""
        largest = int(self.sizes.max())
        for rich in sorted(range(len(hands)), key=held.__getitem__, reverse=True):
            spare = held[rich] - least
            if spare >= largest:  # the usual case, in which there is nothing to search
                return rich, int(rng.integers(len(hands[rich])))
            if fitting := [place for place, lot in enumerate(hands[rich]) if self.sizes[lot] <= spare]:
                return rich, fitting[rng.integers(len(fitting))]
        raise ExperimentError(
            f"{len(self.sizes)} groups of up to {largest} samples, which are kept whole, could not be dealt out so "
            f"that each of {len(hands)} CVs has data.min_samples = {least}: lower it, or use more data."
        )

    def samples(self, hands: Hands) -> list[NDArray[np.int64]]:
        """Sample numbers of each owner, ascending."""
        owner = np.empty(len(self.sizes), np.int64)
        for number, hand in enumerate(hands):
            owner[hand] = number
        of_sample = owner[self.of_sample]
        ends = np.cumsum(np.bincount(of_sample, minlength=len(hands)))
        return np.split(np.argsort(of_sample, kind="stable"), ends[:-1])
