"""Slots with a TDD pattern, old channel knowledge, rare reports and open-loop power equal their plain twin."""

import numpy as np
import pytest

from tests.protocol.slot_twin import PlainAir, PlainCell, Sender, columns
from vefl_sim.optimize.rat.allocate import AllocationMethod, needs_large
from vefl_sim.optimize.rat.books import Air, Books, CellConstants, Knowledge, Queues, new_log
from vefl_sim.optimize.rat.burst import run_slots

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
    plain = PlainCell(0.5e-3, 1.6e6, 0.2, 200.0, 0.05, "auto", first_beta=2e7)
    senders = [Sender(10 ** rng.uniform(1, 3), 0, int(rng.integers(20, 60)), rng.uniform(2e4, 2e5)) for _ in range(cvs)]
    watts = {id(sender): 10 ** rng.uniform(-3, -1) for sender in senders}
    code, efficiency = AllocationMethod.AUTO, np.array([0.0, 0.0, 2e7])
    cell = CellConstants(int(code), 0.5e-3, 1.6e6 / np.log(2), 0.2, 200.0, 0.05)
    slot, lost, window = 0, 0, given["report_slots"] + given["grant_slots"] - 1
    before = np.concatenate(([0], np.cumsum(symbols)))
    while senders and slot < 3000:
        fading = rng.gamma(4, size=(SLOTS, len(senders), prbs))
        queues = Queues(*(columns(senders, name) for name in Queues._fields))
        measured = fading * rng.choice([0.9, 1.1], fading.shape) * queues.snr_per_watt[None, :, None]
        ring = np.array([[0.0] * window for _ in senders]).reshape(len(senders), window)
        for v, sender in enumerate(senders):
            for number, bits in sender.outages.items():
                if number >= slot - window:
                    ring[v, number % window] = bits
        counts = (columns(senders, name) for name in ("lost_slots", "lost_bits", "lost_j"))
        delays = given["report_slots"], given["grant_slots"]
        knowledge = Knowledge(measured, *delays, *counts, ring) if given["known"] else None
        prb_watts = np.array([watts[id(sender)] for sender in senders]) if given["fixed"] else None
        share = np.array([symbols[number % len(symbols)] / 13 for number in range(slot, slot + SLOTS)])
        books = Books(queues, efficiency, new_log(SLOTS, len(senders), prbs), np.zeros(len(senders)))
        large = needs_large(code, prbs)
        done = run_slots(large, cell, slot, fading, books, Air(share, before, 13), knowledge, prb_watts)
        for index in range(done):
            known_gain = measured[index] if given["known"] else None
            air = PlainAir(symbols, *delays, known_gain, prb_watts)
            row = plain.run_slot(slot + index, fading[index], senders, air)
            close = {"rtol": 1e-8, "atol": 1e-12}
            np.testing.assert_allclose(books.log.power_w[index], row["power_w"], **close)
            sent = books.log.rate_bps[index] * 0.5e-3
            np.testing.assert_allclose(sent - books.log.bits_lost[index], row["bits"], rtol=1e-8, atol=1e-6)
            np.testing.assert_allclose(books.log.bits_lost[index], row["lost"], rtol=1e-8, atol=1e-6)
            np.testing.assert_allclose(books.log.bits_left[index], row["bits_left"], **close)
            np.testing.assert_allclose(books.log.gap[index], row["gap"], rtol=0, atol=1e-9)
        np.testing.assert_allclose(queues.transmit_j, columns(senders, "transmit_j"), rtol=1e-8)
        np.testing.assert_allclose(queues.snr_sum, columns(senders, "snr_sum"), rtol=1e-8)
        np.testing.assert_allclose(efficiency[:2], [plain.rate_sum, plain.power_sum], rtol=1e-8)
        if knowledge is not None:
            np.testing.assert_array_equal(knowledge.lost_slots, columns(senders, "lost_slots"))
            np.testing.assert_allclose(knowledge.lost_bits, columns(senders, "lost_bits"), rtol=1e-8)
            np.testing.assert_allclose(knowledge.lost_j, columns(senders, "lost_j"), rtol=1e-8)
        lost = max([lost, *(sender.lost_slots for sender in senders)])
        senders = [sender for sender in senders if sender.bits_left]
        slot += done
    assert not senders
    assert (lost > 3) == given["known"]
