"""Recomputed slots: the decisions of the MAC pass, and a planted error of every kind is caught."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from simpy import Environment, Event

from vefl_sim.core.errors import AuditFailed
from vefl_sim.experiment.experiment import RadioTable
from vefl_sim.optimize.rat.allocate import AllocationStatus
from vefl_sim.optimize.rat.edf import edf
from vefl_sim.optimize.rat.methods import AUTO
from vefl_sim.protocol.ledger import Account
from vefl_sim.protocol.mac import Burst, MacScheduler
from vefl_sim.protocol.messages import TrainOrder
from vefl_sim.protocol.uplink import Uplink, Upload
from vefl_sim.radio.fading import RayleighFading
from vefl_sim.radio.link import Link
from vefl_sim.simulation.audit import EVERY, Audit, DecidedSlot

LINK = Link.of(RadioTable(antennas=1))


def decided(cvs: int, slots: int = 3) -> Burst:
    """Slots as the MAC decides them: `cvs` uploads with one deadline on ten pRBs, all with their bits left."""
    mac = MacScheduler(LINK, Still(), edf, AUTO, 5e-4, tradeoff=1e3)
    uplink = Uplink()
    for cv in range(1, cvs + 1):
        order = TrainOrder(cv, 1, 1, 1e9, 1, 0.0, 40_000, 3, 100, 0.0)
        account = Account(cv, 1, 1.0, 1.0, 40_000.0, 0.0, 40_000.0 + cv)
        uplink.add(Upload(order, account, Event(Environment()), 0, 3))
    uplink.admit(64)
    with pytest.raises(StopIteration) as end:  # nobody is asked, so it runs to its end
        next(mac.transmit(64, uplink, slots))
    return end.value.value


class Still:
    """A channel of CVs that do not move, with the same fading in every run."""

    _fading = RayleighFading(7, 10, 1)

    def move(self, scene) -> None:
        pass

    def mean_snr_per_watt(self, cvs):
        return np.linspace(200.0, 2000.0, len(cvs))

    def fading_gains(self, slot, slots, cvs):
        return self._fading.gains(slot, slots, cvs)


def recomputed(slot: Burst, index: int = 1, **keys: bool) -> list[str]:
    """The laws that the recomputed slot breaks."""
    return [law for law, _ in DecidedSlot(Audit(LINK, 5e-4, **keys), slot, index).broken()]


@pytest.mark.parametrize("cvs", [5, 14])
def test_slots_of_the_mac_hold_when_they_are_computed_again(cvs: int) -> None:
    slot = decided(cvs)
    assert slot.slots == 3
    assert [recomputed(slot, index) for index in range(3)] == [[], [], []]


def _served(slot: Burst) -> int:
    return int(slot.log.prbs[1].argmax())


def _scale(column: str, factor: float) -> Callable[[Burst], None]:
    """Multiply what was logged of the CV with the most pRBs."""

    def doctor(slot: Burst) -> None:
        getattr(slot.log, column)[1, _served(slot)] *= factor

    return doctor


def _other_channel(slot: Burst) -> None:
    slot.fading[1] *= 0.99


def _more_than_there_is(slot: Burst) -> None:
    slot.log.bits_left[1] = slot.log.rate_bps[1] * 5e-4 * 0.9


def _no_owner(slot: Burst) -> None:
    slot.log.owner[1] = -1


def _tenfold_power(slot: Burst) -> None:
    slot.log.watts[1] *= 10


def _negative_power(slot: Burst) -> None:
    slot.log.watts[1, 0] = -1e-3


def _later_deadline(slot: Burst) -> None:
    upload = slot.uploads[_served(slot)]
    upload.order = replace(upload.order, deadline_slot=200)


def _not_yet(slot: Burst) -> None:
    slot.uploads[_served(slot)].earliest_slot = 66


_starved = _scale("rate_bps", 0.0)


@pytest.mark.parametrize(
    ("doctor", "law"),
    [
        (_scale("rate_bps", 1.001), "the capacity"),
        (_other_channel, "the capacity"),
        (_more_than_there_is, "the capacity"),
        (_scale("prbs", 2), "C7"),
        (_no_owner, "C7"),
        (_tenfold_power, "C12"),
        (_scale("power_w", 0.5), "C12"),
        (_negative_power, "C11"),
        (_later_deadline, "the order of deadlines"),
        (_not_yet, "the start of uploads"),
        (_starved, "a rate floor"),
    ],
)
def test_a_doctored_slot_is_caught(doctor: Callable[[Burst], None], law: str) -> None:
    slot = decided(14)
    doctor(slot)
    assert law in recomputed(slot)
    assert recomputed(slot, 0) == [] or law in ("the order of deadlines", "the start of uploads")
    audit = Audit(LINK, 5e-4, slots=EVERY - 1)  # so that slot 65 is recomputed
    with pytest.raises(AuditFailed, match=r"slot 65 breaks .*: "):
        audit.burst(slot)


def test_ties_go_to_the_larger_backlog() -> None:
    """All have one deadline, CVs 5 to 14 have the most left, and CV 1 is served in place of one of them."""
    slot = decided(14)
    assert np.flatnonzero(slot.log.prbs[0]).tolist() == list(range(4, 14))
    slot.log.owner[0, slot.log.owner[0] == 13], slot.log.prbs[0, [0, 13]] = 0, [1, 0]
    assert "the order of deadlines" in recomputed(slot, 0)


def test_parts_of_the_users_keep_the_laws_of_physics_only() -> None:
    slot = decided(14)
    _later_deadline(slot)
    assert recomputed(slot, edf=False) == []
    slot = decided(14)
    _starved(slot)
    assert recomputed(slot, floors=False) == recomputed(slot, edf=False) == []
    _tenfold_power(slot)
    assert "C12" in recomputed(slot, edf=False, floors=False)


def test_floors_that_cannot_be_met_are_no_breach() -> None:
    slot = decided(14)
    _starved(slot)
    slot.log.outcome[1] = AllocationStatus.INFEASIBLE_FLOORS
    assert recomputed(slot) == []
