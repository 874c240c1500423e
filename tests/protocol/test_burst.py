"""Many slots in one call give the same results, bit for bit, as one slot per call, and nearly the same as in Python."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.optimize.problems import random_problem
from tests.protocol.slot_twin import PlainMac, Sender, columns, queues_of
from tests.protocol.test_golden import EXPERIMENT as GOLDEN
from tests.scripted import ScriptedCars
from vefl_sim import Backlog, Experiment, RatAllocation, RatProblem, Run, from_tables, simulate, with_settings
from vefl_sim.core.errors import VeflWarning
from vefl_sim.optimize.rat.allocate import AllocationMethod, AllocationStatus, needs_large
from vefl_sim.optimize.rat.burst import apply_grants, run_slots, slots_to_count_on
from vefl_sim.optimize.rat.burst_state import BurstChannel, BurstState, Grants, MacConfig, Slot, UplinkPattern, new_log
from vefl_sim.optimize.rat.edf import edf
from vefl_sim.optimize.rat.methods import AUTO, SCA
from vefl_sim.optimize.rat.problem import Solution, solve
from vefl_sim.protocol.mac import MacScheduler
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


UPLINK = UplinkPattern(np.ones(8), np.array([0, 13]), 13)


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


NO_ROUNDS = ["scheme.kind=afa-cd", "vefl.sojourn_weight=0.5", "mac.start=ready", "aggregation.buffer=4"]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(["rat.method=auto"], id="auto"),
        pytest.param(["rat.method=equal"], id="equal", marks=pytest.mark.slow),
        pytest.param(["rat.method=proportional-fair"], id="proportional-fair", marks=pytest.mark.slow),
        pytest.param(NO_ROUNDS, id="no rounds"),
    ],
)
def test_bursts_of_any_length_give_the_same_run(tmp_path, monkeypatch: pytest.MonkeyPatch, settings: list[str]) -> None:
    ticked = run_with(tmp_path, 1, monkeypatch, *settings)
    burst = run_with(tmp_path, 256, monkeypatch, *settings)
    odd = run_with(tmp_path, 7, monkeypatch, *settings)
    assert 0 < ticked.summary["updates_delivered"] <= ticked.summary["updates_ordered"]
    assert ticked.content_digest() == burst.content_digest() == odd.content_digest()


class Leaver(ScriptedCars):
    """One parked car, and one that leaves at 0.99502 s, in the middle of the seventh of the 16 slots of its upload."""

    paths = (lambda s: (100.0, 0.0), lambda s: (480.0 + 20.1 * s, 0.0))


def test_leaving_in_the_middle_of_a_burst(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = with_settings(from_tables(GOLDEN), "mobility.kind=tests.protocol.test_burst:Leaver", "run.rounds=1")
    runs = [run_with(tmp_path, longest, monkeypatch, experiment=experiment) for longest in (1, 3, 64, 256)]
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
        ({}, None),
        ({"policy": SCA}, None),
        ({"scheduler": plain_edf}, "mac.scheduler"),
        ({"policy": plain_policy}, "rat.method"),
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


@pytest.mark.parametrize(("method", "cvs", "prbs"), [("auto", 4, 6), ("auto", 9, 5), ("large", 4, 14), ("equal", 3, 5)])
def test_many_slots_equal_their_plain_twin(method: str, cvs: int, prbs: int) -> None:
    """Power, energy, bits and gap of every slot, until all has been sent: with floors, caps and a price on power."""
    rng = np.random.default_rng(cvs)
    plain = PlainMac(0.5e-3, 1.6e6, 0.2, 200.0, 0.05, method, first_beta=2e7)
    senders = [Sender(10 ** rng.uniform(1, 3), 0, int(rng.integers(20, 60)), rng.uniform(2e4, 2e5)) for _ in range(cvs)]
    code, efficiency = AllocationMethod[method.upper()], np.array([0.0, 0.0, 2e7])
    config = MacConfig(int(code), 0.5e-3, 1.6e6 / np.log(2), 0.2, 200.0, 0.05)
    # Rounding of λ moves the bound of `large` by up to 1e-3 of Σ a·r (the descent takes another path), and can change
    # the owner of a pRB without power, over which the mean SNR is taken.
    slot, gap_error = 0, 3e-3 if method == "large" else 1e-9
    while senders:
        fading = rng.gamma(4, size=(8, len(senders), prbs))
        queues, log = queues_of(senders), new_log(8, len(senders), prbs)
        channel, state = (
            BurstChannel(slot, columns(senders, "snr_per_watt"), fading),
            BurstState(queues, efficiency, log),
        )
        done = run_slots(needs_large(code, prbs), config, channel, state, UPLINK, None, None)
        for index in range(done):
            row = plain.run_slot(slot + index, fading[index], senders)
            close = {"rtol": 1e-8, "atol": 1e-12}
            np.testing.assert_allclose(log.power_w[index], row["power_w"], **close)
            for bits in (log.bits[index], log.rate_bps[index] * 0.5e-3):
                np.testing.assert_allclose(bits, row["bits"], rtol=1e-8, atol=1e-6)
            np.testing.assert_allclose(log.bits_left[index], row["bits_left"], **close)
            np.testing.assert_allclose(log.gap[index], row["gap"], rtol=0, atol=gap_error)
        np.testing.assert_allclose(queues["transmit_j"], columns(senders, "transmit_j"), rtol=1e-8)
        if method != "large":
            np.testing.assert_allclose(queues["snr_sum"], columns(senders, "snr_sum"), rtol=1e-8)
        np.testing.assert_array_equal(queues["slots"], columns(senders, "slots"))
        np.testing.assert_allclose(efficiency[:2], [plain.rate_sum, plain.power_sum], rtol=1e-8)
        np.testing.assert_allclose(queues["bits_left"] - log.bits[done - 1], columns(senders, "bits_left"), rtol=1e-8)
        senders = [sender for sender in senders if sender.bits_left]
        slot += done
    assert slot > 20


@pytest.mark.parametrize(
    ("status", "bound", "gap"),
    [("GAP", 12.0, 0.5), ("OPTIMAL", 10.0, 0.0), ("GAP", 10 - 1e-12, 0.0), ("POLICY", 12.0, np.nan)],
)
def test_the_gap_of_a_slot(status: str, bound: float, gap: float) -> None:
    """(bound − objective)/Σ a·r, never negative, and only where a bound is claimed."""
    config = MacConfig(0, 0.5e-3, 1.0, 0.2, 0.0, 0.0)
    log = new_log(1, 1, 2)
    solution = Solution(10.0, bound, AllocationStatus[status])
    first, one_of_two = np.zeros(1, np.int64), np.array([0, -1])
    grants = Grants(first, np.ones((1, 2)), one_of_two, np.ones(2), np.ones(1), 4.0, solution)
    state = BurstState(queues_of([Sender(1.0, 0, 0, 1.0)]), np.zeros(3), log)
    apply_grants(config, Slot(0, 0, 1.0, np.ones(1), np.ones((1, 2))), grants, state, None)
    np.testing.assert_allclose(log.gap, [gap], rtol=1e-15)
    assert log.prbs.tolist() == [[1]]
    assert log.watts.tolist() == [[1.0, 0.0]]


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(1, 5)), min_size=1, max_size=12))
def test_the_compiled_order_is_edf(rows: list[tuple[int, float]]) -> None:
    deadline, left = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    backlog = Backlog(0, np.arange(len(rows)), deadline, left, np.ones(len(rows)))
    assert edf(backlog, len(rows)).tolist() == sorted(range(len(rows)), key=lambda v: (deadline[v], -left[v], v))


@pytest.mark.parametrize(
    ("slots_left", "backlogged", "expected"),
    [(100, 5, 100), (100, 10, 100), (100, 20, 50), (1, 20, 1), (0, 5, 1), (-9, 5, 1)],
)
def test_slots_a_cv_can_count_on(slots_left: int, backlogged: int, expected: int) -> None:
    assert slots_to_count_on(slots_left, backlogged, 10) == expected


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("power_w=good.power_w * 2", "more power than its P_max"),
        ("rate_bps=good.rate_bps * 2", "cannot carry"),
        ("owner=good.owner + 9", "unknown owner"),
        ("power_w=-good.power_w", "negative power"),
        ("owner=good.owner * 0 - 1", "a pRB without an owner"),
        ("rate_bps=-good.rate_bps", "negative or not a number"),
        ("rate_bps=good.rate_bps * np.nan", "not a number"),
        ("rate_bps=good.rate_bps[:0]", "rate_bps per CV"),
    ],
)
def test_an_invalid_allocation_fails_the_run(tmp_path, monkeypatch: pytest.MonkeyPatch, body: str, words: str) -> None:
    from vefl_sim import RunFailed

    monkeypatch.syspath_prepend(tmp_path)
    name = "cheat_" + str(abs(hash(body)))
    (tmp_path / f"{name}.py").write_text(
        "from dataclasses import replace\nimport numpy as np\nfrom vefl_sim.optimize.rat.problem import solve\n"
        f"def cheat(problem):\n    good = solve(problem, 'equal')\n    return replace(good, {body})\n"
    )
    with pytest.raises(RunFailed, match=words):
        simulate(with_settings(BUSY, f"rat.method={name}:cheat"), out=tmp_path)


def test_random_problems_resemble_those_of_a_run() -> None:
    """So that benchmarks are representative: most random problems are feasible, and rate floors bind in some."""
    statuses = [solve(random_problem(4, 10, seed, tightness=0.5)).status for seed in range(50)]
    assert statuses.count("optimal") > 25
