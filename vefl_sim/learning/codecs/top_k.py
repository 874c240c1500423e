"""Top-k: only the numbers with the largest absolute values are sent; each CV adds the rest to its next update.

Stich, Cordonnier and Jaggi, Sparsified SGD with Memory (NeurIPS 2018).
"""

import numpy as np

from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.codecs.codec import Codec, Numbers, packed, unpacked

_VALUE_BYTES = 4


class TopK(Codec):
    """k = share · M numbers, each with its position; of equal ones the first."""

    feedback = True
    unused_keys = ("update.levels", "model.float_bits")

    def __init__(self, experiment: Experiment) -> None:
        self._share = experiment.update.keep_share

    def bits(self, numbers: int) -> int:
        """32 bits for each value and ⌈log₂ M⌉ for its position, filled up to whole bytes."""
        kept = self._kept(numbers)
        return 8 * (_VALUE_BYTES * kept + -(-kept * _width(numbers) // 8))

    def encode(self, change: Numbers, rng: np.random.Generator) -> bytes:
        """The values that are kept, in the order of their positions, then the positions."""
        largest = np.argsort(-np.abs(change), kind="stable")[: self._kept(len(change))]
        positions = np.sort(largest)
        return change[positions].astype("<f4").tobytes() + packed(positions, _width(len(change)))

    def decode(self, message: bytes, numbers: int) -> Numbers:
        """The values at their positions, and zero elsewhere."""
        kept = self._kept(numbers)
        received = np.zeros(numbers, np.float32)
        positions = unpacked(message[_VALUE_BYTES * kept :], kept, _width(numbers))
        received[positions] = np.frombuffer(message[: _VALUE_BYTES * kept], "<f4")
        return received

    def _kept(self, numbers: int) -> int:
        return max(1, round(self._share * numbers))


def _width(numbers: int) -> int:
    """Bits of a position."""
    return max(1, (numbers - 1).bit_length())
