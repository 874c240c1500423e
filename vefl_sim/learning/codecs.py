"""Codecs of updates (`update.codec`): every delivered update is encoded by its CV and decoded by the server.

- float32: updates arrive as they are, with the paper's number of bits.
- float16: every number is rounded to 16 bits.
- QSGD: every number is rounded at random to one of s + 1 levels, so that its mean is unchanged. Alistarh et al., QSGD:
  Communication-Efficient SGD via Gradient Quantization and Encoding (NeurIPS 2017), with buckets of 512 numbers and a
  code of fixed length.
- Top-k: only the numbers with the largest absolute values are sent; each CV adds the rest to its next update. Stich,
  Cordonnier and Jaggi, Sparsified SGD with Memory (NeurIPS 2018).
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import RunFailed
from vefl_sim.core.rng import Streams
from vefl_sim.core.state import State
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.learning.learner import Model
from vefl_sim.learning.trees import cast_like, from_vector, minus, plus, split, vector

Numbers = NDArray[np.float32]
"""The change of a model by local training, ω_v − ω_k, in one vector."""


class Codec:
    """Encodes the change of a model. The size of a message depends only on the number of numbers, so plans know it."""

    feedback: bool = False
    """Whether each CV remembers what its last message has left out, and adds it to the next one."""
    is_exact: bool = False
    """Whether updates arrive as they are: nothing is encoded, and only `bits` is used."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment

    @abstractmethod
    def bits(self, numbers: int) -> int:
        """Bits of a message with this many numbers: S, the payload of an update."""

    @abstractmethod
    def encode(self, change: Numbers, rng: np.random.Generator) -> bytes:
        """The message; its length is ⌈bits / 8⌉ bytes."""

    @abstractmethod
    def decode(self, message: bytes, numbers: int) -> Numbers:
        """What the server reads from the message."""


@dataclass
class Coding:
    """The codec of a run, with the errors that CVs remember.

    The error of a CV changes when its update is aggregated. A CV whose update is lost knows that, and keeps its error.
    Statistics of a network (BatchNorm's) are not coded, since a variance must stay positive: 32 bits each are added.
    """

    codec: Codec
    streams: Streams
    errors: dict[int, Numbers] = field(default_factory=dict)  # CV -> what its last message has left out

    def transmit(self, cv: int, order: int, start: Model, trained: Model) -> Model:
        """The model that the server reads from the update of a CV; random numbers depend on the CV and its order.

        Training that has diverged is passed on as it is, so that it shows as with any other codec.
        """
        (begun, _), (ended, statistics) = split(start), split(trained)
        change = vector(minus(ended, begun))
        if not np.all(np.isfinite(change)):
            return trained
        if self.codec.feedback and cv in self.errors:
            change = change + self.errors[cv]
        message = self.codec.encode(change, self.streams.generator("codec", cv, order))
        received = np.asarray(self.codec.decode(message, len(change)), np.float32)
        self._check(message, received, len(change))
        if self.codec.feedback:
            self.errors[cv] = change - received
        decoded = {**plus(begun, from_vector(received, begun)), **statistics}
        return cast_like(decoded, start)

    def _check(self, message: bytes, received: Numbers, numbers: int) -> None:
        """Refuse a user-defined codec whose messages have another size than it states."""
        name, bits = type(self.codec).__name__, self.codec.bits(numbers)
        if not isinstance(message, bytes) or len(message) != -(-bits // 8):
            size = f"{len(message)} bytes" if isinstance(message, bytes) else f"a {type(message).__name__}"
            raise RunFailed(f"update.codec: {name}.encode returned {size}, but bits({numbers}) is {bits} bits.")
        if received.shape != (numbers,) or not np.all(np.isfinite(received)):
            raise RunFailed(f"update.codec: {name}.decode must return {numbers} finite numbers.")

    def state(self) -> State:
        """The errors of all CVs, for a checkpoint."""
        return {"errors": self.errors}

    def restore(self, state: State) -> None:
        """Restore the errors from a checkpoint."""
        self.errors = state["errors"]


def packed(values: NDArray[Any], width: int) -> bytes:
    """Non-negative integers below 2^width, each in `width` bits, one after the other."""
    shifts = np.arange(width - 1, -1, -1)
    return np.packbits(((values.astype(np.int64)[:, None] >> shifts) & 1).astype(np.uint8)).tobytes()


def unpacked(message: bytes, count: int, width: int) -> NDArray[np.int64]:
    """The `count` integers that `packed` has written."""
    bits = np.unpackbits(np.frombuffer(message, np.uint8), count=count * width).reshape(count, width)
    return bits.astype(np.int64) @ (1 << np.arange(width - 1, -1, -1))


class Float32(Codec):
    """S = M·(1 + FPP) bits (`model.float_bits`), as the paper counts them; the update itself is not changed."""

    is_exact = True
    unused_keys = ("update.levels", "update.keep_share")

    def bits(self, numbers: int) -> int:
        """M·(1 + FPP)."""
        return numbers * (1 + self.experiment.model.float_bits)

    def encode(self, change: Numbers, rng: np.random.Generator) -> bytes:
        """The numbers in 32 bits each; a run does not call this, since nothing would change."""
        return change.astype("<f4").tobytes()

    def decode(self, message: bytes, numbers: int) -> Numbers:
        """The numbers of a message."""
        return np.frombuffer(message, "<f4").astype(np.float32)


class Float16(Codec):
    """Half precision: 16 bits per number; numbers beyond its range become the largest, ±65504."""

    unused_keys = ("update.levels", "update.keep_share", "model.float_bits")

    def bits(self, numbers: int) -> int:
        """16 bits per number."""
        return 16 * numbers

    def encode(self, change: Numbers, rng: np.random.Generator) -> bytes:
        """The numbers, each rounded to the nearest float16."""
        largest = float(np.finfo(np.float16).max)
        return np.clip(change, -largest, largest).astype("<f2").tobytes()

    def decode(self, message: bytes, numbers: int) -> Numbers:
        """The numbers of a message."""
        return np.frombuffer(message, "<f2").astype(np.float32)


BUCKET = 512
_NORM_BYTES = 4


class Qsgd(Codec):
    """Per bucket its norm ‖x‖ (32 bits), per number a sign and a level ℓ: the server reads ±‖x‖·ℓ/s.

    |x|/‖x‖·s is rounded up with the probability of its fraction. So the code is unbiased, with a variance of at most
    min(n/s², √n/s)·‖x‖² for each bucket of n numbers.
    """

    unused_keys = ("update.keep_share", "model.float_bits")

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
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


_VALUE_BYTES = 4


class TopK(Codec):
    """k = share · M numbers, each with its position; of equal ones the first."""

    feedback = True
    unused_keys = ("update.levels", "model.float_bits")

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
        return max(1, round(self.experiment.update.keep_share * numbers))


def _width(numbers: int) -> int:
    """Bits of a position."""
    return max(1, (numbers - 1).bit_length())
