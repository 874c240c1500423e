"""A channel of one's own is planned with as it states, and what it returns is checked."""

from pathlib import Path

import numpy as np
import pytest

from tests.protocol.test_golden import EXPERIMENT
from tests.scripted import ScriptedCars
from vefl_sim import Channel, Link, Run, RunFailed, from_tables, simulate
from vefl_sim.radio.channel import CheckedChannel


class OneParkedCar(ScriptedCars):
    paths = (lambda s: (100.0, 0.0),)


class Constant:
    """Every pRB of every CV has the same gain; 1 is a rate of 2 bit/s/Hz at P_max = 0.2 W."""

    gain = 1.0

    def __init__(self, experiment, streams) -> None:
        self._link = Link.of(experiment.radio)

    def move(self, scene) -> None:
        pass

    def mean_snr_per_watt(self, cvs) -> np.ndarray:
        return np.full(len(cvs), 15.0)

    def fading_gains(self, slot, slots, cvs) -> np.ndarray:
        return np.full((slots, len(cvs), self._link.prbs), self.gain)

    def worst_case_rate_bps(self, cvs) -> np.ndarray:
        return self._link.rate_bps(self._link.max_power_w * self.mean_snr_per_watt(cvs) * self.gain)


class Better(Constant):
    gain = 1e3


def alone(channel: str, out: Path, **rat: object) -> Run:
    """One parked CV and one pRB: 33,000 bit over 360 kHz · 13/14 in slots of 0.5 ms, two rounds of 2000 slots."""
    tables = EXPERIMENT | {
        "mobility": {"kind": f"{__name__}:OneParkedCar", "max_speed_mps": 20.0},
        "radio": EXPERIMENT["radio"] | {"prbs": 1, "channel": channel},
        "rat": rat,
    }
    return simulate(from_tables(tables), out=out)


@pytest.mark.parametrize(("kind", "slots", "method"), [("Constant", 99, "auto"), ("Better", 18, "equal")])
def test_the_slots_used_by_one_cv_alone_are_those_planned(kind: str, slots: int, method: str, tmp_path: Path) -> None:
    """2 bit/s/Hz: 33000 / 334.29 = 98.7 slots; log₂ 3001 = 11.551 bit/s/Hz: 33000 / 1930.7 = 17.1 slots."""
    run = alone(f"{__name__}:{kind}", tmp_path, method=method)
    assert run.vehicles["state"].tolist() == ["delivered"] * 2
    assert run.vehicles["worst_slots"].tolist() == run.vehicles["tx_slots"].tolist() == [slots] * 2
    assert not any(run.summary["overruns"].values())


class Returning(Constant):
    """A channel with given answers."""

    def __init__(self, **answers: object) -> None:
        for method, answer in answers.items():
            setattr(self, method, lambda *_, answer=answer: answer)


def test_a_channel_is_asked_for_at_most_64_slots_at_a_time() -> None:
    asked: list[tuple[int, int]] = []

    class Noting(Constant):
        def fading_gains(self, slot, slots, cvs) -> np.ndarray:
            asked.append((slot, slots))
            return np.arange(slot, slot + slots, dtype=float)[:, None, None] + np.zeros((slots, len(cvs), 5))

    gains = CheckedChannel(Noting.__new__(Noting), prbs=5).fading_gains(100, 150, CVS)
    assert asked == [(100, 64), (164, 64), (228, 22)]
    assert np.array_equal(gains[:, 1, 4], np.arange(100, 250))


CVS = np.array([4, 7])
CALLS = {"mean_snr_per_watt": (CVS,), "fading_gains": (0, 3, CVS), "worst_case_rate_bps": (CVS,)}


@pytest.mark.parametrize(
    ("method", "answer", "complaint"),
    [
        ("mean_snr_per_watt", np.ones(3), "shape (3,)."),
        ("mean_snr_per_watt", 5.0, "float of shape ()."),
        ("mean_snr_per_watt", np.array([1.0, -2.0]), "not -2.0."),
        ("worst_case_rate_bps", None, "NoneType of shape ()."),
        ("worst_case_rate_bps", [1.0, np.nan], "not nan."),
        ("worst_case_rate_bps", ["fast", "slow"], "not list."),
        ("fading_gains", np.ones((2, 3, 5)), "3 slots × 2 CVs × 5 pRBs, not ndarray of shape (2, 3, 5)."),
    ],
)
def test_wrong_answers_of_a_channel_are_one_sentence(method: str, answer: object, complaint: str) -> None:
    channel = CheckedChannel(Returning(**{method: answer}), prbs=5)
    with pytest.raises(RunFailed) as failed:
        getattr(channel, method)(*CALLS[method])
    assert str(failed.value).startswith(f"radio.channel: Returning.{method}() must return ")
    assert str(failed.value).endswith(complaint)


@pytest.mark.parametrize("answer", [[3, 0], np.array([3.0, 0.0], np.float32), np.array([3.0, 9, 0, 9])[::2]])
def test_kernels_get_contiguous_float64_arrays(answer: object) -> None:
    channel: Channel = CheckedChannel(Returning(mean_snr_per_watt=answer), prbs=5)
    values = channel.mean_snr_per_watt(CVS)
    assert (values.tolist(), values.dtype, values.flags.c_contiguous) == ([3.0, 0.0], np.float64, True)


class Nan(Constant):
    gain = np.nan


def test_a_wrong_answer_ends_the_run_with_that_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=r"^radio.channel: Nan.worst_case_rate_bps\(\) must return .* 1 CVs, not nan.$"):
        alone(f"{__name__}:Nan", tmp_path)
