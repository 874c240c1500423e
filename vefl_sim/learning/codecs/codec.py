"""The interface of a codec, and its use: every delivered update is encoded by its CV and decoded by the server."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vefl_sim.core.errors import RunFailed
from vefl_sim.core.rng import Streams
from vefl_sim.core.state import State
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
