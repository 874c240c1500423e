"""Slots with a TDD pattern, old channel knowledge, rare reports and open-loop power equal their plain twin."""

import numpy as np
import pytest

from tests.protocol.slot_twin import PlainAccess, PlainMac, Sender, columns, queues_of
from vefl_sim.optimize.rat.allocate import AllocationMethod, needs_large
from vefl_sim.optimize.rat.burst import run_slots
from vefl_sim.optimize.rat.burst_state import BurstChannel, BurstState, Feedback, MacConfig, UplinkPattern, new_log

SLOTS = 8
KINDS = {
    "TDD": {"symbols": (0, 4, 13)},
    "old": {"known": True},
    "old, reports": {"known": True, "report_slots": 5, "grant_slots": 3},
    "open loop": {"fixed": True},
    "all": {"symbols": (0, 0, 5, 13, 13), "known": True, "report_slots": 3, "grant_slots": 2, "fixed": True},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("cvs", "prbs"), [(1, 3), (3, 5), (6, 4)])
def test_many_slots_equal_their_plain_twin(kind: str, cvs: int, prbs: int) -> None:
    given = {"symbols": (13,), "report_slots": 1, "grant_slots": 0, "known": False, "fixed": False} | KINDS[kind]
    rng, symbols = np.random.default_rng(cvs), given["symbols"]
    plain = PlainMac(0.5e-3, 1.6e6, 0.2, 200.0, 0.05, "auto", first_beta=2e7)
    senders = [Sender(10 ** rng.uniform(1, 3), 0, int(rng.integers(20, 60)), rng.uniform(2e4, 2e5)) for _ in range(cvs)]
    watts = {id(sender): 10 ** rng.uniform(-3, -1) for sender in senders}
    code, efficiency = AllocationMethod.AUTO, np.array([0.0, 0.0, 2e7])
    config = MacConfig(int(code), 0.5e-3, 1.6e6 / np.log(2), 0.2, 200.0, 0.05)
    slot, lost, window = 0, 0, given["report_slots"] + given["grant_slots"] - 1
    before = np.concatenate(([0], np.cumsum(symbols)))
    while senders and slot < 3000:
        fading = rng.gamma(4, size=(SLOTS, len(senders), prbs))
        channel = BurstChannel(slot, columns(senders, "snr_per_watt"), fading)
        measured = fading * rng.choice([0.9, 1.1], fading.shape) * channel.snr_per_watt[None, :, None]
        ring = np.array([[0.0] * window for _ in senders]).reshape(len(senders), window)
        for v, sender in enumerate(senders):
            for number, bits in sender.outages.items():
                if number >= slot - window:
                    ring[v, number % window] = bits
        delays = given["report_slots"], given["grant_slots"]
        feedback = Feedback(measured, *delays, ring) if given["known"] else None
        prb_watts = np.array([watts[id(sender)] for sender in senders]) if given["fixed"] else None
        share = np.array([symbols[number % len(symbols)] / 13 for number in range(slot, slot + SLOTS)])
        queues, log = queues_of(senders), new_log(SLOTS, len(senders), prbs)
        state, pattern = BurstState(queues, efficiency, log), UplinkPattern(share, before, 13)
        done = run_slots(needs_large(code, prbs), config, channel, state, pattern, feedback, prb_watts)
        for index in range(done):
            known_gain = measured[index] if given["known"] else None
            access = PlainAccess(symbols, *delays, known_gain, prb_watts)
            row = plain.run_slot(slot + index, fading[index], senders, access)
            close = {"rtol": 1e-8, "atol": 1e-12}
            np.testing.assert_allclose(log.power_w[index], row["power_w"], **close)
            for bits in (log.bits[index], log.rate_bps[index] * 0.5e-3 - log.bits_lost[index]):
                np.testing.assert_allclose(bits, row["bits"], rtol=1e-8, atol=1e-6)
            np.testing.assert_allclose(log.bits_lost[index], row["lost"], rtol=1e-8, atol=1e-6)
            np.testing.assert_allclose(log.bits_left[index], row["bits_left"], **close)
            np.testing.assert_allclose(log.gap[index], row["gap"], rtol=0, atol=1e-9)
        np.testing.assert_allclose(efficiency[:2], [plain.rate_sum, plain.power_sum], rtol=1e-8)
        for name in ("transmit_j", "snr_sum", "lost_slots", "bits_lost", "lost_j"):
            np.testing.assert_allclose(queues[name], columns(senders, name), rtol=1e-8)
        lost = max([lost, *(sender.lost_slots for sender in senders)])
        senders = [sender for sender in senders if sender.bits_left]
        slot += done
    assert not senders
    assert (lost > 3) == given["known"]
