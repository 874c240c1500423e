"""Many slots in one call give the same results, bit for bit, as one slot per call, and nearly the same as in Python."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.optimize.problems import random_problem
from tests.protocol.slot_twin import PlainAccess, PlainMac, Sender, columns, queues_of
from tests.protocol.test_golden import EXPERIMENT as GOLDEN
from tests.scripted import ScriptedCars
from vefl_sim import Backlog, Experiment, RatAllocation, RatProblem, Run, from_tables, simulate, with_settings
from vefl_sim.analysis.verify.verification import verify
from vefl_sim.core.errors import RunFailed, VeflWarning
from vefl_sim.optimize.rat.allocate import AllocationMethod, needs_large
from vefl_sim.optimize.rat.burst import run_slots
from vefl_sim.optimize.rat.burst_state import (
    BurstChannel,
    BurstState,
    Feedback,
    MacConfig,
    UplinkPattern,
    new_log,
)
from vefl_sim.optimize.rat.edf import edf
from vefl_sim.optimize.rat.methods import AUTO, SCA
from vefl_sim.optimize.rat.problem import solve
from vefl_sim.protocol.mac import MacScheduler, require_valid
from vefl_sim.radio.link import Link

BUSY = from_tables(
    {
        "run": {"name": "busy", "rounds": 2},
        "mobility": {"max_speed_mps": 26.82},
        "radio": {"max_tx_power_w": 0.01, "prbs": 4},
        "vefl": {"round_s": 2.0, "budget": 5000.0, "sojourn_weight": 0.0},
        "scheme": {"selected": 40},
        "data": {"train_samples": 2000, "test_samples": 100},
        "learning": {"kind": "none"},
        "trace": {"slots": "full"},
    }
)


SLOTS = 8


def plain_edf(backlog: Backlog, limit: int) -> np.ndarray:
    """EDF as a user-defined scheduler: not the function that is compiled, so every slot is run in Python."""
    return edf(backlog, limit)


def plain_policy(problem: RatProblem) -> RatAllocation:
    return solve(problem)


def run_with(
    folder, longest_burst: int, monkeypatch: pytest.MonkeyPatch, *settings: str, experiment: Experiment = BUSY
) -> Run:
    original = MacScheduler.__init__

    def limited(self, *arguments, **keywords) -> None:
        original(self, *arguments, **keywords)
        self.longest_burst = longest_burst

    with monkeypatch.context() as patch:
        patch.setattr(MacScheduler, "__init__", limited)
        return simulate(with_settings(experiment, *settings), out=folder / str(longest_burst))


KEYS = {
    "jakes": ["radio.fading=jakes"],
    "rician": ["radio.fading=rician", "radio.delay_spread_s=1e-7"],
    "held during a round": ["radio.large_scale=round"],
    "delay spread": ["radio.delay_spread_s=38.901"],  # as a shell passes it on
    "old knowledge": ["radio.csi_delay_slots=4"],
    "TDD": ["mac.tdd=DDDSU", "mac.special_uplink_symbols=5"],
    "grants and reports": ["mac.grant_delay_slots=3", "mac.bsr_slots=7"],
    "open loop": ["radio.power=open-loop"],
    "broadcast": ["downlink.kind=broadcast"],
}
ALL = [
    *("radio.fading=rician", 'radio.delay_spread_s="38.901"', "radio.csi_delay_slots=230", "radio.csi_margin_db=3"),
    *("radio.power=open-loop", "radio.p0_dbm=-70", "mac.tdd=DDSUU", "mac.grant_delay_slots=3", "mac.bsr_slots=7"),
    *("downlink.kind=broadcast", "radio.large_scale=round"),
]
"""Knowledge that is older than a mobility step; the other keys as above."""
EARLY = [*ALL, "server.early_close=true"]
NO_ROUNDS = ["scheme.kind=afa-cd", "mac.start=ready", "aggregation.buffer=3"]


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param([], id="auto"),
        pytest.param([*ALL, *NO_ROUNDS, "vefl.sojourn_weight=0.5", "trace.slots=uploads"], id="all, no rounds"),
        *(
            pytest.param(keys, id=name, marks=pytest.mark.slow)
            for name, keys in {
                "proportional-fair": ["rat.method=proportional-fair"],
                "rounds that start between two scenes": EARLY,
                **KEYS,
            }.items()
        ),
    ],
)
def test_bursts_of_any_length_give_the_same_run(keys: list[str], tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [run_with(tmp_path, longest, monkeypatch, *keys) for longest in (1, 7, 256)]
    assert len({run.content_digest() for run in runs}) == 1
    assert runs[0].summary["updates_ordered"] > 0
    assert [finding for finding in verify(runs[0]) if not finding.passed] == []


class Leaver(ScriptedCars):
    """One parked car, and one that leaves at 0.99502 s, in the middle of the seventh of the 16 slots of its upload."""

    paths = (lambda s: (100.0, 0.0), lambda s: (480.0 + 20.1 * s, 0.0))


def test_leaving_in_the_middle_of_a_burst(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = with_settings(from_tables(GOLDEN), "mobility.kind=tests.protocol.test_burst:Leaver", "run.rounds=1")
    runs = [run_with(tmp_path, longest, monkeypatch, experiment=experiment) for longest in (3, 256)]
    assert len({run.content_digest() for run in runs}) == 1
    [lost] = runs[0].vehicles.query("state == 'lost'").to_dict("records")
    assert (lost["reason"], lost["tx_slots"]) == ("coverage_left", 7)
    assert lost["transmit_j"] == pytest.approx(7 * 0.5e-3 * 0.2)  # the seventh slot costs energy but delivers no bits
    slots = runs[0].table("slots").query("cv == 2")
    assert lost["delivered_fraction"] * 33_000 == pytest.approx(slots["rate_bps"].iloc[:6].sum() * 0.5e-3)


@pytest.mark.slow
def test_python_parts_see_the_same_slots(tmp_path) -> None:
    """With Python parts a slot is scheduled and allocated in Python, and all else is done by the same kernels."""
    compiled = simulate(BUSY, out=tmp_path).table("slots")
    python = simulate(
        with_settings(
            BUSY,
            "mac.scheduler=tests.protocol.test_burst:plain_edf",
            "rat.method=tests.protocol.test_burst:plain_policy",
        ),
        out=tmp_path,
    ).table("slots")
    assert len(python) == len(compiled)
    pd.testing.assert_frame_equal(python[["slot", "cv", "prbs"]], compiled[["slot", "cv", "prbs"]])
    for column in ("power_w", "rate_bps", "bits_left"):
        np.testing.assert_allclose(python[column], compiled[column], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("own", "keys"),
    [
        ({"policy": SCA}, None),
        ({"scheduler": plain_edf, "policy": plain_policy}, "mac.scheduler and rat.method"),
    ],
)
def test_a_run_says_once_that_slots_in_python_are_slow(own: dict, keys: str | None) -> None:
    parts = {"scheduler": edf, "policy": AUTO} | own
    with warnings.catch_warnings(record=True) as caught:
        MacScheduler(Link.of(BUSY.radio), None, **parts, slot_s=5e-4, tradeoff=0.0)
    assert [(type(warning.message), str(warning.message).split(",")[0]) for warning in caught] == (
        [(VeflWarning, f"With your own {keys}")] if keys else []
    )


@dataclass(frozen=True)
class Case:
    """The allocation method of a twin, and what its radio has that the paper's has not."""

    method: str = "auto"
    symbols: tuple[int, ...] = (13,)
    report_slots: int = 1
    grant_slots: int = 0
    known: bool = False  # the gNB has measured the channel before the slot
    fixed: bool = False  # open-loop power


CASES = {
    "auto": Case(),
    "large": Case("large"),
    "equal": Case("equal"),
    "TDD": Case(symbols=(0, 4, 13)),
    "old, reports": Case(known=True, report_slots=5, grant_slots=3),
    "all": Case(symbols=(0, 0, 5, 13, 13), known=True, report_slots=3, grant_slots=2, fixed=True),
    "open loop": Case(fixed=True),
}


@pytest.mark.parametrize(
    ("name", "cvs", "prbs"),
    [
        *(pytest.param(name, *sizes) for name in CASES if name != "large" for sizes in ((1, 3), (9, 5))),
        pytest.param("large", 4, 14, marks=pytest.mark.slow),  # compiling it takes longest
    ],
)
def test_many_slots_equal_their_plain_twin(name: str, cvs: int, prbs: int) -> None:
    """Power, energy, bits and gap of every slot, until all has been sent: with floors, caps and a price on power."""
    rng, case = np.random.default_rng(cvs), CASES[name]
    plain = PlainMac(0.5e-3, 1.6e6, 0.2, 200.0, 0.05, case.method, first_beta=2e7)
    senders = [Sender(10 ** rng.uniform(1, 3), 0, int(rng.integers(20, 60)), rng.uniform(2e4, 2e5)) for _ in range(cvs)]
    watts = {id(sender): 10 ** rng.uniform(-3, -1) for sender in senders}
    code, efficiency = AllocationMethod[case.method.upper()], np.array([0.0, 0.0, 2e7])
    config = MacConfig(int(code), 0.5e-3, 1.6e6 / np.log(2), 0.2, 200.0, 0.05)
    # Rounding of λ moves the bound of `large` by up to 1e-3 of Σ a·r (the descent takes another path), and can change
    # the owner of a pRB without power, over which the mean SNR is taken.
    gap_error = 3e-3 if name == "large" else 1e-9
    sums = ["transmit_j", "slots", "lost_slots", "bits_lost", "lost_j", *([] if name == "large" else ["snr_sum"])]
    slot, lost, window = 0, 0, case.report_slots + case.grant_slots - 1
    before = np.concatenate(([0], np.cumsum(case.symbols)))
    while senders and slot < 3000:
        fading = rng.gamma(4, size=(SLOTS, len(senders), prbs))
        channel = BurstChannel(slot, columns(senders, "snr_per_watt"), fading)
        measured = fading * rng.choice([0.9, 1.1], fading.shape) * channel.snr_per_watt[None, :, None]
        unreported = np.zeros((len(senders), window))
        for v, sender in enumerate(senders):
            for number, bits in sender.outages.items():
                if number >= slot - window:
                    unreported[v, number % window] = bits
        feedback = Feedback(measured, case.report_slots, case.grant_slots, unreported) if case.known else None
        prb_watts = np.array([watts[id(sender)] for sender in senders]) if case.fixed else None
        share = np.array([case.symbols[number % len(case.symbols)] / 13 for number in range(slot, slot + SLOTS)])
        queues, log = queues_of(senders), new_log(SLOTS, len(senders), prbs)
        state, pattern = BurstState(queues, efficiency, log), UplinkPattern(share, before, 13)
        large = None if case.fixed else needs_large(code, prbs)
        done = run_slots(large, config, channel, state, pattern, feedback, prb_watts)
        for index in range(done):
            known_gain = measured[index] if case.known else None
            access = PlainAccess(case.symbols, case.report_slots, case.grant_slots, known_gain, prb_watts)
            row = plain.run_slot(slot + index, fading[index], senders, access)
            close = {"rtol": 1e-8, "atol": 1e-12}
            np.testing.assert_allclose(log.power_w[index], row["power_w"], **close)
            for bits in (log.bits[index], log.rate_bps[index] * 0.5e-3 - log.bits_lost[index]):
                np.testing.assert_allclose(bits, row["bits"], rtol=1e-8, atol=1e-6)
            np.testing.assert_allclose(log.bits_lost[index], row["lost"], rtol=1e-8, atol=1e-6)
            np.testing.assert_allclose(log.bits_left[index], row["bits_left"], **close)
            np.testing.assert_allclose(log.gap[index], row["gap"], rtol=0, atol=gap_error)
        np.testing.assert_allclose(efficiency[:2], [plain.rate_sum, plain.power_sum], rtol=1e-8)
        for column in sums:
            np.testing.assert_allclose(queues[column], columns(senders, column), rtol=1e-8)
        left = queues["bits_left"] - log.bits[done - 1]
        np.testing.assert_allclose(left, columns(senders, "bits_left"), rtol=1e-8, atol=1e-6)
        lost = max([lost, *(sender.lost_slots for sender in senders)])
        senders = [sender for sender in senders if sender.bits_left]
        slot += done
    assert not senders
    assert slot > 3
    assert (lost > 3) == case.known


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(1, 5)), min_size=1, max_size=12))
def test_the_compiled_order_is_edf(rows: list[tuple[int, float]]) -> None:
    deadline, left = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    backlog = Backlog(0, np.arange(len(rows)), deadline, left, np.ones(len(rows)))
    assert edf(backlog, len(rows)).tolist() == sorted(range(len(rows)), key=lambda v: (deadline[v], -left[v], v))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda good: {"power_w": good.power_w * 2}, "more power"),
        (lambda good: {"rate_bps": good.rate_bps * 2}, "cannot carry"),
        (lambda good: {"owner": good.owner + 9}, "unknown owner"),
        (lambda good: {"power_w": -good.power_w}, "negative power"),
        (lambda good: {"owner": good.owner * 0 - 1}, "without an owner"),
        (lambda good: {"rate_bps": -good.rate_bps}, "negative or not a number"),
        (lambda good: {"rate_bps": good.rate_bps * np.nan}, "not a number"),
        (lambda good: {"rate_bps": good.rate_bps[:0]}, "rate_bps per CV"),
        (lambda good: {"status": "perfect"}, "RatAllocation"),
    ],
)
def test_an_invalid_allocation_is_refused(change: Callable, words: str) -> None:
    problem = random_problem(3, 5, 1)
    good = solve(problem, "equal")
    require_valid(problem, good)
    with pytest.raises(RunFailed, match=words):
        require_valid(problem, replace(good, **change(good)))
