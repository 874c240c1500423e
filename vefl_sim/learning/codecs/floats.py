"""float32: updates arrive as they are, with the paper's number of bits. float16: every number is rounded to 16 bits."""

import numpy as np

from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.codecs.codec import Codec, Numbers


class Float32(Codec):
    """S = M·(1 + FPP) bits (`model.float_bits`), as the paper counts them; the update itself is not changed."""

    is_exact = True
    unused_keys = ("update.levels", "update.keep_share")

    def __init__(self, experiment: Experiment) -> None:
        self._bits_per_number = 1 + experiment.model.float_bits

    def bits(self, numbers: int) -> int:
        """M·(1 + FPP)."""
        return numbers * self._bits_per_number

    def encode(self, change: Numbers, rng: np.random.Generator) -> bytes:
        """The numbers in 32 bits each; a run does not call this, since nothing would change."""
        return change.astype("<f4").tobytes()

    def decode(self, message: bytes, numbers: int) -> Numbers:
        """The numbers of a message."""
        return np.frombuffer(message, "<f4").astype(np.float32)


class Float16(Codec):
    """Half precision: 16 bits per number; numbers beyond its range become the largest, ±65504."""

    unused_keys = ("update.levels", "update.keep_share", "model.float_bits")

    def __init__(self, experiment: Experiment) -> None:
        self._largest = float(np.finfo(np.float16).max)

    def bits(self, numbers: int) -> int:
        """16 bits per number."""
        return 16 * numbers

    def encode(self, change: Numbers, rng: np.random.Generator) -> bytes:
        """The numbers, each rounded to the nearest float16."""
        return np.clip(change, -self._largest, self._largest).astype("<f2").tobytes()

    def decode(self, message: bytes, numbers: int) -> Numbers:
        """The numbers of a message."""
        return np.frombuffer(message, "<f2").astype(np.float32)
