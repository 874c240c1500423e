"""Files of arrays: the same bytes each time, and read from a stranger without unpacking or executing anything."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from vefl_sim.core.arrays import read_npz, write_npz
from vefl_sim.core.errors import BadInput

ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "b.c": np.float32([1.5]), "scalar": np.array(7), "none": np.zeros((0, 3))}


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return [*one] == [*other] and all(
        np.array_equal(one[name], other[name]) and one[name].dtype == other[name].dtype for name in one
    )


def test_what_is_written_is_read_by_us_and_by_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, now_s in (("ours", 1e9), ("later", 2e9)):
        monkeypatch.setattr("time.time", lambda now_s=now_s: now_s)
        write_npz(tmp_path / f"{name}.npz", ARRAYS)
    assert (tmp_path / "ours.npz").read_bytes() == (tmp_path / "later.npz").read_bytes()
    np.savez(tmp_path / "numpy.npz", **ARRAYS)
    assert same(read_npz(tmp_path / "numpy.npz"), ARRAYS)
    assert same(read_npz(tmp_path / "ours.npz"), ARRAYS)
    with np.load(tmp_path / "ours.npz") as loaded:
        assert same(dict(loaded), ARRAYS)


def pickled(path: Path) -> None:
    np.savez(path, a=np.array([{"x": 1}], dtype=object))


def too_short(path: Path) -> None:
    """An array whose header announces 80 GB."""
    np.lib.format.write_array_header_1_0(
        member := io.BytesIO(), {"descr": "<f8", "fortran_order": False, "shape": (10**10,)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", member.getvalue() + bytes(24))


def compressed(path: Path) -> None:
    np.savez_compressed(path, a=np.zeros(10_000_000))


def not_an_array(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("code.py", "1 / 0")


def members_in_the_same_bytes(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("big.npy", bytes(100_000))
        archive.filelist += [archive.getinfo("big.npy")] * 50


def flipped(path: Path) -> None:
    write_npz(path, ARRAYS)
    content = bytearray(path.read_bytes())
    content[content.index(np.arange(6.0).tobytes()) + 5] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (pickled, "Object arrays cannot be loaded when allow_pickle=False"),
        (too_short, "EOF|allocate"),
        (compressed, "it is compressed"),
        (not_an_array, "no item named"),
        (members_in_the_same_bytes, "larger than the file"),
        (flipped, "CRC"),
        (lambda path: path.write_bytes(b""), "does not end as an .npz file does"),
        (lambda path: path.write_text("PK" * 100), "does not end as an .npz file does"),
    ],
)
def test_a_file_of_a_stranger_is_a_reason(write, reason: str, tmp_path: Path) -> None:
    write(tmp_path / "x.npz")
    with pytest.raises(ValueError, match=reason):
        read_npz(tmp_path / "x.npz")


def test_a_file_that_does_not_fit_into_memory_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "x.npz").open("wb") as file:
        os.truncate(file.fileno(), 1 << 42)  # it takes no space on the disk
    with pytest.raises(BadInput, match=r"x\.npz need 4096\.0 GiB of memory, .*: name a smaller file\.$"):
        read_npz(tmp_path / "x.npz")
