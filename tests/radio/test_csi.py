"""What the gNB knows where its channel knowledge is old."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.protocol.test_burst import BUSY
from tests.radio.test_scattering import GRID, scene
from vefl_sim import Run, simulate, why, with_settings
from vefl_sim.analysis.verify.verification import verify
from vefl_sim.radio.channel import DelayedCsi

CVS = np.array([3, 8])


@dataclass
class Counting:
    """A channel whose mean SNR is the number of the scene (plus the CV), and whose gain is the number of the slot."""

    scenes: int = 0
    asked: list[tuple[int, int]] = field(default_factory=list)

    def move(self, scene) -> None:
        self.scenes += 1

    def mean_snr_per_watt(self, cvs) -> np.ndarray:
        return 100.0 * self.scenes + cvs

    def fading_gains(self, slot, slots, cvs) -> np.ndarray:
        self.asked.append((slot, slots))
        return np.arange(slot, slot + slots, dtype=float)[:, None, None] * np.ones((1, len(cvs), 2))

    def worst_case_rate_bps(self, cvs) -> np.ndarray:
        return np.ones(len(cvs))


def moved(delay: int, *scenes: list[int], margin: float = 1.0) -> DelayedCsi:
    """A channel after scenes with these vehicles, 0.1 s (200 slots) apart."""
    channel = DelayedCsi(Counting(), delay, GRID.slot_ns, margin)
    for number, vehicles in enumerate(scenes):
        channel.move(scene(0.1 * number, dict.fromkeys(vehicles, 0.0)))
    return channel


def test_a_slot_is_known_as_it_was() -> None:
    """Slots 400 to 402, known as of 398 to 400: two are of the second scene. What was measured has a margin."""
    channel = moved(2, [3, 8], [3, 8], [3, 8], margin=0.25)
    known = 4 * channel.known_gains(400, 3, CVS)
    assert known[:, :, 1].tolist() == [[398 * 203, 398 * 208], [399 * 203, 399 * 208], [400 * 303, 400 * 308]]
    assert np.array_equal(channel.mean_snr_per_watt(CVS), [303, 308])


@dataclass
class Stepping(Counting):
    """The same, but its mean SNR rises with each round, too."""

    def begin_round(self, time_ns: int) -> None:
        self.scenes += 10


@pytest.mark.parametrize(("start_slot", "before"), [(200, 103), (300, 203)])
def test_a_round_that_changes_the_channel_is_known_later(start_slot: int, before: int) -> None:
    """A round that starts with the second scene, in slot 200, or between two scenes."""
    channel = DelayedCsi(Stepping(), 2, GRID.slot_ns)
    for number in range(2):
        channel.move(scene(0.1 * number, {3: 0.0}))
    channel.begin_round(start_slot * GRID.slot_ns)
    known = channel.known_gains(start_slot, 4, np.array([3]))[:, 0, 0] / np.arange(start_slot - 2, start_slot + 2)
    assert known.tolist() == [before, before, 1203, 1203]


def test_a_cv_that_was_not_there_is_known_as_it_appeared() -> None:
    channel = moved(300, [3], [3], [3, 8])
    assert channel.known_gains(410, 1, CVS)[0, :, 0].tolist() == [110 * 103, 110 * 308]


def test_before_the_first_slot_the_first_is_known() -> None:
    channel = moved(50, [3, 8])
    assert channel.known_gains(20, 40, CVS)[:, 0, 0].tolist() == [0.0] * 31 + [103.0 * slot for slot in range(1, 10)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Its power is high, so that plans fit their round although they expect grants to be lost."""
    settings = ("radio.csi_delay_slots=4", "radio.fading=jakes", "mac.bsr_slots=7", "mac.grant_delay_slots=3")
    experiment = with_settings(BUSY, *settings, "radio.max_tx_power_w=0.2")
    return simulate(experiment, out=tmp_path_factory.mktemp("old"))


def test_lost_grants_cost_energy_and_carry_nothing(run: Run) -> None:
    slots, outages, vehicles = run.table("slots"), run.table("outages"), run.vehicles
    assert run.summary["grants_lost"] == outages["lost_slots"].sum() > 100
    sent = slots.groupby("cv")["rate_bps"].sum() * 5e-4
    by_cv = outages.groupby("cv")[["granted_bits", "lost_bits"]].sum().reindex(sent.index)
    # granted = delivered + lost, but for the last slot of a CV that the end of the round cuts off
    assert (sent >= by_cv["granted_bits"] * (1 - 1e-9) - 1e-3).all()
    assert (by_cv["lost_bits"] <= by_cv["granted_bits"]).all()
    assert vehicles["transmit_j"].sum() == pytest.approx(slots["power_w"].sum() * 5e-4)
    assert 0 < outages["lost_j"].sum() < vehicles["transmit_j"].sum()
    assert [finding for finding in verify(run) if not finding.passed] == []


def test_why_tells_of_lost_grants(run: Run) -> None:
    row = run.table("outages").sort_values("lost_slots").iloc[-1]
    sentences = " ".join(why(run, cv=int(row["cv"]), round=int(row["round"])))
    assert f"the grants of {int(row['lost_slots'])} of these slots were above the capacity and lost" in sentences
