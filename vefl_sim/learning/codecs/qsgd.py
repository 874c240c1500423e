"""QSGD: every number is rounded at random to one of s + 1 levels, so that its mean is unchanged.

Alistarh et al., QSGD: Communication-Efficient SGD via Gradient Quantization and Encoding (NeurIPS 2017), with buckets
of 512 numbers and a code of fixed length.
"""

import numpy as np

from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.codecs.codec import Codec, Numbers, packed, unpacked

BUCKET = 512
_NORM_BYTES = 4


class Qsgd(Codec):
    """Per bucket its norm ‖x‖ (32 bits), per number a sign and a level ℓ: the server reads ±‖x‖·ℓ/s.

    |x|/‖x‖·s is rounded up with the probability of its fraction. So the code is unbiased, with a variance of at most
    min(n/s², √n/s)·‖x‖² for each bucket of n numbers.
    """

    unused_keys = ("update.keep_share", "model.float_bits")

    def __init__(self, experiment: Experiment) -> None:
        self._levels = experiment.update.levels
        self._width = 1 + self._levels.bit_length()  # sign and level, 0 … s

    def bits(self, numbers: int) -> int:
        """32 bits per bucket, 1 + ⌈log₂(s + 1)⌉ per number, filled up to whole bytes."""
        return 8 * (_NORM_BYTES * -(-numbers // BUCKET) + -(-numbers * self._width // 8))

    def encode(self, change: Numbers, rng: np.random.Generator) -> bytes:
        """The norms of all buckets, then signs and levels."""
        norms = self._norms(change)
        norm = np.repeat(norms.astype(np.float64), BUCKET)[: len(change)]
        scaled = np.divide(np.abs(change) * float(self._levels), norm, out=np.zeros(len(change)), where=norm > 0)
        lower = np.floor(scaled)
        level = np.minimum(lower + (rng.random(len(change)) < scaled - lower), self._levels).astype(np.int64)
        sign = np.signbit(change).astype(np.int64)
        return norms.astype("<f4").tobytes() + packed(sign << (self._width - 1) | level, self._width)

    def decode(self, message: bytes, numbers: int) -> Numbers:
        """±‖x‖·ℓ/s."""
        head = _NORM_BYTES * -(-numbers // BUCKET)
        norm = np.repeat(np.frombuffer(message[:head], "<f4").astype(np.float64), BUCKET)[:numbers]
        codes = unpacked(message[head:], numbers, self._width)
        sign, level = codes >> (self._width - 1), codes & ((1 << (self._width - 1)) - 1)
        return (norm * level / self._levels * (1 - 2 * sign)).astype(np.float32)

    def _norms(self, change: Numbers) -> Numbers:
        firsts = np.arange(0, len(change), BUCKET)
        return np.sqrt(np.add.reduceat(change.astype(np.float64) ** 2, firsts)).astype(np.float32)
