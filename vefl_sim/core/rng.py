"""Named random streams from one seed.

Each use of randomness has its own stream, identified by name. So an additional draw in one place changes no draws
elsewhere, and every scheme sees the same traffic, SLAs and fading (common random numbers).
"""

import hashlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Streams:
    """The random streams of a run, all derived from its seed."""

    seed: int

    def generator(self, name: str, *index: int) -> np.random.Generator:
        """A generator for this name and index; the same arguments always give the same draws."""
        return np.random.Generator(np.random.PCG64(self._sequence(name, index)))

    def philox_key(self, name: str) -> int:
        """A 128-bit key for counter-based draws (Philox), which depend on an index and not on the order of calls."""
        low, high = self._sequence(name, ()).generate_state(2, np.uint64)
        return int(low) | int(high) << 64

    def seed_for(self, name: str) -> int:
        """A 32-bit seed for a library that has its own random generator (JAX)."""
        return int(self._sequence(name, ()).generate_state(1, np.uint32)[0])

    def _sequence(self, name: str, index: tuple[int, ...]) -> np.random.SeedSequence:
        digest = hashlib.sha256(name.encode()).digest()
        return np.random.SeedSequence(self.seed, spawn_key=(int.from_bytes(digest[:8], "little"), *index))
