"""One stored result in one small file."""

import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sweep.results.stored import measurements, origin, store_result
from vefl_sim.core.errors import BadInput
from vefl_sim.sweep.points import Point, load_sweep
from vefl_sim.sweep.results.result import read_result, result_from


@pytest.fixture
def point(tmp_path: Path) -> Point:
    file = tmp_path / "s.toml"
    file.write_text('[run]\nname = "s"\nrounds = 4\n[sweep]\nseeds = [1]\n')
    return load_sweep(file).points[0]


def test_a_result_comes_back_as_it_was(tmp_path: Path, point: Point) -> None:
    before = measurements([0.1, None, 0.8177])
    after = read_result(store_result(tmp_path / "results", point, [0.1, None, 0.8177]))
    for name in ("round", "end_ns", "in_coverage", "eligible", "ordered", "delivered", "steps"):
        assert after.rounds[name].tolist() == before.rounds[name].tolist()
    assert after.rounds["accuracy"].isna().tolist() == [False, True, False]
    assert after.rounds["accuracy"].iloc[2] == 0.8177
    for name, digits in (("cost", 7), ("energy_j", 6), ("p_suc", 7)):
        assert after.rounds[name].astype(float).to_numpy() == pytest.approx(
            before.rounds[name].astype(float), rel=10 ** -(digits - 1)
        )
    for _, row in after.rounds.dropna(subset="p_suc").iterrows():
        assert row["p_suc_with_ineligible"] == pytest.approx(row["p_suc"] * row["ordered"] / (row["ordered"] + 1))
    assert (after.ineligible, after.source, after.selects) == (3, "result", True)  # PDPC is the default
    assert (after.file.version, after.file.content, after.file.wall_s) == ("0.1.0", "d1", 12.3)


values = st.lists(st.floats(0, 2000), min_size=1, max_size=30)


@given(values, st.integers(0, 900))
def test_shares_above_a_threshold_are_exact(sojourns_s: list[float], mark: int) -> None:
    own = result_from(measurements([0.1], sojourns_s), **origin({})).sojourns_s
    for x in (mark / 100, mark / 100 + 10 if mark % 10 == 0 else mark / 100, float(mark)):
        # a value within rounding of the mark may be either
        assert abs((own >= x).sum() - (np.array(sojourns_s) >= x).sum()) <= (abs(np.array(sojourns_s) - x) < 1e-6).sum()
    assert own == pytest.approx(np.sort(sojourns_s), rel=0.006, abs=0.006)


@given(st.lists(st.floats(0, 1), max_size=30), st.integers(0, 1000))
def test_shares_of_p_suc_are_exact(fractions: list[float], thousandths: int) -> None:
    measured = measurements([0.1])
    measured.delivered_fractions = np.array(fractions)  # type: ignore[misc]
    own, x = result_from(measured, **origin({})).delivered_fractions, thousandths / 1000
    assert abs((own >= x).sum() - (np.array(fractions) >= x).sum()) <= sum(abs(f - x) < 1e-6 for f in fractions)


def unpacked(path: Path) -> dict[str, Any]:
    return dict(json.loads(lzma.decompress(path.read_bytes())))


def packed(path: Path, change: Any) -> Path:
    """Replace the content of a file, or some of its fields, or columns of its rounds."""
    before = unpacked(path)
    if isinstance(change, dict) and {*change} <= {*before["rounds"]} - {*before}:
        change = {"rounds": before["rounds"] | change}
    text = change if isinstance(change, str) else json.dumps(before | change)
    path.write_bytes(lzma.compress(text.encode()))
    return path


IMPOSSIBLE = [("accuracy", 1.5), ("end_ns", -1), ("cost", -1.0)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("{", "Expecting property name"),
        ("[" * 100_000, ""),
        ({"toml": "["}, ""),
        ({"ineligible": -1}, "ineligible"),
        ({"sojourn_s": {"values": [1.0], "counts": [10**9]}}, "sojourn_s"),
        ({"p_suc": {"values": [0.5, 1.0], "counts": [1]}}, "values and counts do not match"),
        ({"p_suc": {"values": [1.5], "counts": [1]}}, "p_suc.values"),
        *(({column: [value]}, f"rounds.{column}") for column, value in IMPOSSIBLE),
        ({"cost": [1.0, 2.0]}, "the same length"),
    ],
)
def test_a_bad_file_gets_one_sentence(tmp_path: Path, point: Point, change: object, message: str) -> None:
    path = packed(store_result(tmp_path, point, [0.5]), change)
    assert path.name.startswith("pdpc-signs-s1-")
    with pytest.raises(BadInput) as error:
        read_result(path)
    (sentence,) = error.value.problems
    assert sentence.startswith(f"{path} is not a stored result (")
    assert message in sentence
    assert sentence.endswith(": remove it, and run its point again.")


def test_incomplete_and_large_files_are_refused(tmp_path: Path, point: Point) -> None:
    path = store_result(tmp_path, point, [0.5, 0.6])
    for content, message in (
        (path.read_bytes()[:-20], "cut off, or too large"),
        (lzma.compress(b" " * 60_000_000, preset=0), "cut off, or too large"),
        (b"\0" * 3_000_000, "it has more than 2 MB"),
    ):
        path.write_bytes(content)
        with pytest.raises(BadInput, match=message):
            read_result(path)


def test_a_loss_that_is_not_finite_is_left_out(point: Point) -> None:
    measured = measurements([0.1])
    measured.rounds["loss"] = [float("inf")]
    assert result_from(measured, **origin({})).rounds["loss"].isna().all()
