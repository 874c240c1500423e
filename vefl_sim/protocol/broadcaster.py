"""Broadcasts of the model from the gNB to the CVs that are ordered to train, one after the other."""

from dataclasses import dataclass

import numpy as np

from vefl_sim.core.state import State
from vefl_sim.protocol.ledger import Ledger
from vefl_sim.protocol.messages import Broadcast
from vefl_sim.radio.link import Downlink
from vefl_sim.schemes.observation import CoverageSnapshot, Observation
from vefl_sim.schemes.scheme import Plan


@dataclass
class Broadcaster:
    """Sends the model to the CVs of each plan; a broadcast begins when the one before has ended."""

    downlink: Downlink
    ledger: Ledger
    busy_until_ns: int = 0

    def worst_ns(self, snapshot: CoverageSnapshot) -> int:
        """Time until the CVs of a snapshot have the model, if all of them are to get it; plans count on this."""
        if not len(snapshot.cv):
            return 0
        waiting_ns = max(self.busy_until_ns - snapshot.time_ns, 0)
        return waiting_ns + self.downlink.duration_ns(self.downlink.rate_bps(snapshot.snr_per_watt))

    def send(self, observation: Observation, plan: Plan) -> Broadcast | None:
        """Broadcast the model to the CVs of a plan, and book the gNB's energy; None if nobody is to get it."""
        if not len(plan.cv) or plan.bypasses_network:
            return None
        snapshot = observation.snapshot
        rows = np.searchsorted(snapshot.cv, plan.cv)
        rate_bps = self.downlink.rate_bps(snapshot.snr_per_watt[rows])
        start_ns, duration_ns = max(snapshot.time_ns, self.busy_until_ns), self.downlink.duration_ns(rate_bps)
        self.busy_until_ns = start_ns + duration_ns
        energy_j = self.downlink.energy_j(duration_ns)
        self.ledger.broadcast(energy_j)
        bits, end_ns = self.downlink.bits, self.busy_until_ns
        return Broadcast(snapshot.time_ns, start_ns, end_ns, len(rows), bits, rate_bps, energy_j)

    def state(self) -> State:
        """The end of the last broadcast."""
        return {"busy_until_ns": self.busy_until_ns}

    def restore(self, state: State) -> None:
        """Restore the end of the last broadcast from a checkpoint."""
        self.busy_until_ns = state["busy_until_ns"]
