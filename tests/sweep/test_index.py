"""The index of a sweep on disk."""

import os
from pathlib import Path

import pandas as pd
import pytest

from vefl_sim.core.errors import BadInput
from vefl_sim.sweep import index as index_module
from vefl_sim.sweep.index import Index, IndexEntry
from vefl_sim.sweep.points import Sweep, load_sweep


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    file = tmp_path / "s.toml"
    file.write_text('[run]\nname = "s"\n[sweep]\nseeds = [1, 2]\nradio.prbs = [6, 12]\n')
    return load_sweep(file)


def written(sweep: Sweep, out: Path, *settings: str, **entry: object) -> pd.DataFrame:
    """The index after all points were written with this entry."""
    index = Index.of(sweep, out, settings)
    index.write({point.digest: IndexEntry(**entry) for point in sweep.points})  # type: ignore[arg-type]
    return pd.read_csv(index.file)


def test_the_index_has_parameters_seed_run_and_status_which_are_read_again(sweep: Sweep, tmp_path: Path) -> None:
    table = written(sweep, tmp_path, status="failed", error='a "b", c', peak_mb=12.5)
    assert table["radio.prbs"].tolist() == [6, 12, 6, 12]
    assert table["seed"].tolist() == [1, 1, 2, 2]
    row = Index.of(sweep, tmp_path).previous_row(sweep.points[0].digest)
    assert (row["status"], row["error"], row["peak_mb"]) == ("failed", 'a "b", c', 12.5)
    assert "run" not in row


def test_points_of_other_settings_are_kept(sweep: Sweep, tmp_path: Path) -> None:
    written(sweep, tmp_path, status="done")
    fewer = load_sweep(tmp_path / "s.toml", ["radio.antennas=2"], seeds=[1])
    table = written(fewer, tmp_path, "radio.antennas=2", status="waiting")
    assert table["status"].tolist() == ["waiting"] * 2 + ["done"] * 4
    assert table["set"].fillna("").tolist() == ["radio.antennas=2"] * 2 + [""] * 4
    index = Index.of(sweep, tmp_path)
    written(load_sweep(tmp_path / "s.toml", seeds=[7]), tmp_path, status="done")  # by another sweep, meanwhile
    index.write({point.digest: IndexEntry(status="failed") for point in sweep.points})
    again = pd.read_csv(index.file)
    assert again["status"].tolist() == ["failed"] * 4 + ["done"] * 2 + ["waiting"] * 2


def test_an_index_of_another_version_is_refused_or_renamed(
    sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(sweep, tmp_path, status="done")
    file = tmp_path / "sweeps" / "s" / "index.csv"
    before = file.read_bytes()
    monkeypatch.setattr(index_module, "current_version", lambda: "9.9 abc")
    with pytest.raises(BadInput, match=r"index.csv was made by another version .* 4 finished points .* --restart"):
        Index.of(sweep, tmp_path)
    assert file.read_bytes() == before
    restarted = Index.of(sweep, tmp_path, restart=True)
    assert restarted.previous_row(sweep.points[0].digest) == {}
    for _ in range(2):
        restarted.write({point.digest: IndexEntry() for point in sweep.points})
        (renamed,) = file.parent.glob("index-*.csv")
        assert renamed.read_bytes() == before
        assert set(pd.read_csv(file)["status"]) >= {"waiting"}
        file.write_bytes(before)  # a sweep of the other version that still runs; its rows are kept


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "\x00\xff", "a pipe"])
def test_a_damaged_index_gets_one_sentence(sweep: Sweep, tmp_path: Path, content: str) -> None:
    file = tmp_path / "sweeps" / "s" / "index.csv"
    file.parent.mkdir(parents=True)
    if content == "a pipe":
        os.mkfifo(file)  # opening it would wait for a process that writes to it
    else:
        file.write_text(content, encoding="latin-1")
    with pytest.raises(BadInput, match=r"index.csv .* move it away"):
        Index.of(sweep, tmp_path)
