"""Codecs: sizes, errors and what the server reads; QSGD's bias and variance; feedback; whole runs."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.schemes.plain_world import experiment
from vefl_sim import simulate
from vefl_sim.core.errors import ExperimentError, RunFailed
from vefl_sim.core.rng import Streams
from vefl_sim.experiment.kinds import CODECS
from vefl_sim.experiment.plugins import make_part
from vefl_sim.learning.codecs import BUCKET, Codec, Coding, Float16, packed, unpacked
from vefl_sim.simulation.scenario import build_scenario

VECTORS = arrays(
    np.float32, st.integers(1, 3 * BUCKET // 2), elements=st.floats(-100, 100, width=32, allow_subnormal=False)
)


def codec(name: str, **update: object) -> Codec:
    return make_part("update.codec", name, experiment("fedavg", update={"codec": name} | update))  # type: ignore[no-any-return]


@given(st.integers(1, 40), st.integers(0, 200), st.randoms(use_true_random=False))
def test_packed_integers_are_unpacked(width: int, count: int, random) -> None:  # type: ignore[no-untyped-def]
    values = np.array([random.getrandbits(width) for _ in range(count)], np.int64)
    message = packed(values, width)
    assert len(message) == -(-count * width // 8)
    assert unpacked(message, count, width).tolist() == values.tolist()


@pytest.mark.parametrize("name", [name for name in CODECS if name != "float32"])
@settings(deadline=None, max_examples=25)
@given(change=VECTORS)
def test_a_message_has_the_stated_bits(name: str, change: np.ndarray) -> None:
    ours = codec(name)
    message = ours.encode(change, np.random.default_rng(1))
    assert 8 * len(message) == ours.bits(len(change))
    assert ours.decode(message, len(change)).shape == change.shape


@settings(deadline=None, max_examples=25)
@given(change=VECTORS)
def test_float16_rounds_to_the_nearest(change: np.ndarray) -> None:
    ours = codec("float16")
    read = ours.decode(ours.encode(change, np.random.default_rng(1)), len(change))
    assert np.all(np.abs(read - change) <= np.abs(change) * 2.0**-11 + 1e-7)
    huge = np.array([1e30, -1e30], np.float32)
    assert ours.decode(ours.encode(huge, np.random.default_rng(1)), 2).tolist() == [65504.0, -65504.0]


@pytest.mark.parametrize("levels", [1, 15])
@settings(deadline=None, max_examples=10)
@given(change=VECTORS)
def test_qsgd_is_unbiased_and_its_variance_is_bounded(levels: int, change: np.ndarray) -> None:
    """Per bucket of n numbers: E = x, and E‖Q(x) − x‖² ≤ min(n/s², √n/s)·‖x‖²; means over 400 messages."""
    ours, rng, times = codec("qsgd", levels=levels), np.random.default_rng(3), 400
    read = np.array([ours.decode(ours.encode(change, rng), len(change)) for _ in range(times)], np.float64)
    for first in range(0, len(change), BUCKET):
        x, q = change[first : first + BUCKET].astype(np.float64), read[:, first : first + BUCKET]
        norm, n = np.linalg.norm(x), len(x)
        spread = norm / levels  # distance of two levels: the standard deviation of a number is at most half of it
        assert np.all(np.abs(q.mean(axis=0) - x) <= 6 * spread / 2 / np.sqrt(times) + 1e-5 * norm)
        variance = ((q - x) ** 2).sum(axis=1).mean()
        assert variance <= min(n / levels**2, np.sqrt(n) / levels) * norm**2 * 1.25 + 1e-9


def test_top_k_sends_the_largest_and_remembers_the_rest() -> None:
    change = np.array([3.0, -5.0, 0.5, 5.0, -0.1], np.float32)
    coding = Coding(codec("top-k", keep_share=0.4), Streams(1))
    start = {"params": {"w": np.zeros(5, np.float32)}}
    first = coding.transmit(7, 1, start, {"params": {"w": change}})["params"]["w"]
    assert first.tolist() == [0.0, -5.0, 0.0, 5.0, 0.0]
    assert coding.errors[7].tolist() == [3.0, 0.0, 0.5, 0.0, np.float32(-0.1)]
    second = coding.transmit(7, 2, start, {"params": {"w": np.ones(5, np.float32)}})["params"]["w"]
    assert second.tolist() == [4.0, 0.0, 1.5, 0.0, 0.0]
    assert 8 not in coding.errors


@settings(deadline=None, max_examples=20)
@given(changes=st.lists(arrays(np.float32, 40, elements=st.floats(-10, 10, width=32)), min_size=1, max_size=6))
def test_feedback_loses_nothing(changes: list[np.ndarray]) -> None:
    """What was sent in all, plus what the CV still remembers, is the sum of its changes."""
    coding, start = Coding(codec("top-k", keep_share=0.1), Streams(1)), {"w": np.zeros(40, np.float32)}
    sent = sum(coding.transmit(3, number, start, {"w": change})["w"] for number, change in enumerate(changes))
    np.testing.assert_allclose(sent + coding.errors[3], np.sum(changes, axis=0), atol=1e-4)


@pytest.mark.parametrize(("name", "bits"), [("float16", 240), ("qsgd", 112), ("top-k", 40)])
def test_the_payload_has_the_coded_bits(name: str, bits: int) -> None:
    """15 parameters: 16 each; 32 and 5 each, in whole bytes; the largest with its position."""
    assert build_scenario(experiment("fedavg", update={"codec": name})).payload_bits == bits


def test_the_model_is_made_of_what_was_received_in_coded_bits(tmp_path: Path) -> None:
    paid = {"scheme": {"constrained": True}, "vefl": {"budget": 1e6}, "run": {"rounds": 2}}
    exact, coarse = (
        simulate(experiment("fedavg", update=update, **paid), out=tmp_path)  # type: ignore[arg-type]
        for update in ({}, {"codec": "qsgd", "levels": 1})
    )
    bias = "params.Dense_0.bias"
    assert not np.allclose(exact.model(1).arrays[bias], coarse.model(1).arrays[bias], atol=1e-3)
    assert set(coarse.events.query("kind == 'upload_received'")["bits"]) == {64.0}


@pytest.mark.parametrize(("name", "sentence"), [("Longer", "returned 30 bytes"), ("Nan", "15 finite numbers")])
def test_a_codec_that_breaks_its_word_fails_the_run(name: str, sentence: str) -> None:
    coding = Coding(codec(f"{__name__}:{name}"), Streams(1))
    with pytest.raises(RunFailed, match=sentence):
        coding.transmit(1, 1, {"w": np.zeros(15, np.float32)}, {"w": np.ones(15, np.float32)})


def test_a_codec_that_states_no_size_is_one_sentence() -> None:
    with pytest.raises(ExperimentError, match="0 bits"):
        build_scenario(experiment("fedavg", update={"codec": f"{__name__}:Nothing"}))


class Longer(Float16):
    def bits(self, numbers: int) -> int:
        return 8


class Nan(Float16):
    def decode(self, message: bytes, numbers: int) -> np.ndarray:
        return np.full(numbers, np.nan)


class Nothing(Float16):
    def bits(self, numbers: int) -> int:
        return 0
