"""The `uploads` table: one row per CV and 50 ms, from the same slots as the `slots` table."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tests.protocol.test_burst import BUSY
from tests.protocol.test_golden import EXPERIMENT
from vefl_sim import BadInput, from_tables, simulate, with_settings
from vefl_sim.core.clock import SlotGrid
from vefl_sim.protocol.mac import Burst
from vefl_sim.records.upload_bins import UploadBins

GRID = SlotGrid(500_000)  # 100 slots in a bin


def test_three_cars_by_hand(tmp_path: Path) -> None:
    """As in tests/protocol/test_golden.py: 12 slots with one pRB at full power; CV 2 has 1,445 bit left in the end."""
    run = simulate(with_settings(from_tables(EXPERIMENT), "trace.slots=uploads"), out=tmp_path)
    rows = run.table("uploads")
    assert rows["time_ns"].tolist() == [950_000_000] * 2 + [1_950_000_000] * 2
    assert rows["cv"].tolist() == [1, 2, 1, 2]
    assert rows["slots"].tolist() == [12] * 4
    assert rows["prbs"].tolist() == [1.0] * 4
    assert rows["power_w"].tolist() == pytest.approx([0.2] * 4)
    assert rows["bits"].tolist() == pytest.approx([33_000, 33_000, 33_000, 31_555], abs=1)
    assert rows["bits_left"].tolist() == pytest.approx([0, 0, 0, 1_445], abs=1)
    assert not (run.path / "tables" / "slots.parquet").exists()


def test_bins_and_samples_are_those_of_all_slots(tmp_path: Path) -> None:
    full, binned, sampled = (
        simulate(with_settings(BUSY, f"trace.slots={slots}"), out=tmp_path) for slots in ("full", "uploads", "sampled")
    )
    hundredth = full.table("slots").query("slot % 100 == 0").reset_index(drop=True)
    assert 0 < len(hundredth) < len(full.table("slots")) / 50
    pd.testing.assert_frame_equal(sampled.table("slots"), hundredth)
    slots, bins = full.table("slots"), binned.table("uploads")
    assert full.events.equals(binned.events)
    slots_per_bin, slot_s = 50_000_000 // BUSY.slots.slot_ns, BUSY.slots.slot_s
    by_bin = slots.assign(time_ns=slots["slot"] // slots_per_bin * 50_000_000).groupby(["time_ns", "cv"])
    served = bins[bins["slots"] > 0].set_index(["time_ns", "cv"])
    assert served.index.tolist() == list(by_bin.groups)
    assert served["slots"].tolist() == by_bin.size().tolist()
    assert served["prbs"].tolist() == pytest.approx(by_bin["prbs"].mean().tolist())
    assert served["power_w"].tolist() == pytest.approx(by_bin["power_w"].mean().tolist())
    carried = by_bin["rate_bps"].sum() * slot_s
    assert (served["bits"] <= carried + 1e-3).all()  # a CV that leaves within a slot delivers nothing in it
    assert np.isclose(served["bits"].to_numpy(float), carried.to_numpy(float), rtol=1e-6).mean() > 0.9


def burst(first_slot: int, left: np.ndarray, prbs: np.ndarray, power_w: np.ndarray, cvs: list[int]) -> Burst:
    """A burst with these rows of slots."""
    log = SimpleNamespace(prbs=prbs, power_w=power_w, bits_left=left)
    uploads = [SimpleNamespace(cv=cv) for cv in cvs]
    return Burst(first_slot, len(left), log, uploads, None, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("cuts", [[], [7], [1, 2, 99, 100, 101], list(range(1, 250))])
def test_it_does_not_matter_where_bursts_are_cut(cuts: list[int]) -> None:
    rng = np.random.default_rng(5)
    sent = rng.uniform(0, 1000, (250, 3))
    left = 1e6 - np.cumsum(np.vstack([np.zeros(3), sent]), axis=0)
    prbs, power_w = rng.integers(0, 3, (250, 3)), rng.uniform(0, 0.2, (250, 3))

    def rows(cuts: list[int]) -> list[dict]:
        found: list[dict] = []
        bins = UploadBins(GRID, found.append)
        for first, end in zip([0, *cuts], [*cuts, 250], strict=True):
            bins.add(burst(430 + first, left[first:end], prbs[first:end], power_w[first:end], [4, 7, 9]))
            saved = bins.state()
            bins = UploadBins(GRID, found.append)  # as after a checkpoint
            bins.restore(saved)
            for cv, before, after in zip([4, 7, 9], left[end - 1], left[end], strict=True):
                bins.receive(cv, before - after)
        bins.close()
        return found

    whole = rows([])
    assert [(row["time_ns"], row["cv"]) for row in whole] == [
        (time_ns, cv) for time_ns in (200_000_000, 250_000_000, 300_000_000) for cv in (4, 7, 9)
    ]
    assert [row | {"bits": 0, "bits_left": 0} for row in rows(cuts)] == [
        row | {"bits": 0, "bits_left": 0} for row in whole
    ]
    for name in ("bits", "bits_left"):  # this test computes the last slot of each burst from a rounded difference
        assert [row[name] for row in rows(cuts)] == pytest.approx([row[name] for row in whole], rel=1e-12)


def test_two_uploads_of_a_cv_in_one_bin_are_one_row() -> None:
    found: list[dict] = []
    bins = UploadBins(GRID, found.append)
    one, power_w = np.ones((2, 1), np.int64), np.full((2, 1), 0.1)
    bins.add(burst(10, np.array([[300.0], [100.0]]), one, power_w, [8]))
    bins.receive(8, 100.0)  # the first upload is complete: 300 bit
    bins.add(burst(50, np.array([[500.0], [450.0]]), one, 2 * power_w, [8]))
    bins.close()  # the CV left within the last slot, so only 50 bit of the second have arrived
    [row] = found
    assert (row["slots"], row["prbs"], row["bits"], row["bits_left"]) == (4, 1.0, 350.0, 450.0)
    assert row["power_w"] == pytest.approx(0.15)


def test_a_cv_that_waits_for_a_prb_has_a_row() -> None:
    found: list[dict] = []
    bins = UploadBins(GRID, found.append)
    bins.add(burst(10, np.full((3, 1), 300.0), np.zeros((3, 1), np.int64), np.zeros((3, 1)), [8]))
    bins.close()
    values = {"slots": 0, "prbs": 0.0, "power_w": 0.0, "bits": 0.0, "bits_left": 300.0}
    assert found == [{"time_ns": 0, "cv": 8, **values}]


@pytest.mark.parametrize("value", ["true", "0", "all", '["uploads"]'])
def test_other_values_of_the_key_are_refused(value: str) -> None:
    with pytest.raises(BadInput) as refused:
        with_settings(BUSY, f"trace.slots={value}")
    [sentence] = refused.value.problems
    assert sentence.startswith("trace.slots")
    assert "uploads" in sentence
