"""Data sets from files: reading them, choosing subsets, and one-sentence errors for missing or bad files."""

import gzip
import hashlib
import io
import os
import struct
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from tests.learning.datasets.files import (
    cifar_members,
    folder_members,
    idx,
    picture,
    tar_gz,
    write_compact_gtsrb,
    write_folder,
    write_gtsrb,
    write_mnist,
    zipped,
)
from vefl_sim.core.errors import ExperimentError, VeflWarning
from vefl_sim.experiment.experiment import DataTable
from vefl_sim.experiment.plugins import load_part
from vefl_sim.learning.datasets.dataset import Dataset
from vefl_sim.learning.datasets.public import SOURCES, RemoteFile


def read(kind: str, folder: Path | str, seed: int = 1, **keys: object) -> Dataset:
    data = DataTable.model_validate({"kind": kind, "dir": str(folder), **keys})
    return load_part("data.kind", kind).make(data, np.random.default_rng(seed))


def sentence(kind: str, folder: Path | str, **keys: object) -> str:
    with pytest.raises(ExperimentError) as refused:
        read(kind, folder, **keys)
    [problem] = refused.value.problems
    assert problem.endswith(".")
    assert "\n" not in problem
    return problem


def write_cifar(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "cifar-10-binary.tar.gz").write_bytes(tar_gz(cifar_members()))
    return folder


WRITERS: dict[str, Callable[[Path], Path]] = {"mnist": write_mnist, "cifar10": write_cifar, "gtsrb": write_gtsrb}


@pytest.mark.parametrize("kind", ["signs", "fashion-mnist", "folder", *WRITERS])
def test_what_a_data_set_declares_is_true(tmp_path: Path, kind: str) -> None:
    write = WRITERS | {"signs": lambda folder: folder, "fashion-mnist": write_mnist, "folder": write_folder}
    declared, folder = load_part("data.kind", kind), write[kind](tmp_path)
    counts = {"train_samples": 10, "test_samples": 10} if declared.any_number else {}
    small, large = (read(kind, folder, image_px=side, **counts) for side in (16, 24))
    assert declared.channels == small.input_shape[2]
    assert small.class_names is not None
    assert len(set(small.class_names)) == small.classes
    assert ("data.image_px" in declared.unused_keys) == (small.input_shape == large.input_shape)


@pytest.mark.parametrize("kind", ["mnist", "fashion-mnist"])
def test_mnist_has_grey_images_in_the_order_of_the_file(tmp_path: Path, kind: str) -> None:
    data = read(kind, write_mnist(tmp_path))
    assert (data.name, data.classes, data.input_shape) == (kind, 10, (16, 16, 1))
    assert data.train_inputs[:, 3, 5, 0].tolist() == list(range(40))
    assert data.train_targets.tolist() == [number % 10 for number in range(40)]
    assert (len(data.test_targets), data.train_groups) == (20, None)
    assert data.train_targets.dtype == np.int32


def test_files_of_another_data_set_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read("mnist", write_mnist(tmp_path))  # a cut of its own
        digests = {file.name: hashlib.md5((tmp_path / file.name).read_bytes()) for file in SOURCES["mnist"]}
        published = tuple(RemoteFile(name, digest.hexdigest(), ()) for name, digest in digests.items())
        monkeypatch.setitem(SOURCES, "fashion-mnist", published)
        read("fashion-mnist", tmp_path)
    with pytest.warns(VeflWarning, match='"mnist", but these are the files of fashion-mnist: train-images'):
        read("mnist", tmp_path)


def test_cifar_has_channels_last_and_batches_in_order(tmp_path: Path) -> None:
    data = read("cifar10", write_cifar(tmp_path))
    assert data.train_inputs.shape == (20, 32, 32, 3)
    assert data.train_inputs[:, 0, 0, 0].tolist() == list(range(20))
    assert data.train_inputs[7, 4, 9].tolist() == [7, 4, 9]
    assert data.test_targets.tolist() == [number % 10 for number in range(100, 112)]


def test_gtsrb_has_tracks_as_groups_and_the_classes_of_its_table(tmp_path: Path) -> None:
    data = read("gtsrb", write_gtsrb(tmp_path), image_px=16)
    assert (data.classes, data.input_shape) == (43, (16, 16, 3))
    assert data.train_targets.tolist() == [0] * 6 + [42] * 6
    assert np.unique(data.train_groups, return_inverse=True)[1].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert data.train_inputs[10, 8, 8].tolist() == [42, 1, 1]
    assert data.test_inputs[:, 8, 8, 0].tolist() == [0, 1]
    assert data.test_targets.tolist() == [42, 0]


def test_compact_gtsrb_is_recognized_by_its_file_names_and_the_official_one_is_preferred(tmp_path: Path) -> None:
    data = read("gtsrb", write_compact_gtsrb(tmp_path))
    assert data.train_targets.tolist() == [17, 17, 20, 20]
    assert len(np.unique(data.train_groups)) == 2  # track 3 of one class is not track 3 of another
    assert data.test_targets.tolist() == [20]
    assert len(read("gtsrb", write_gtsrb(tmp_path)).train_targets) == 12


@pytest.mark.parametrize("pack", ["folder", "zip", "wrapped zip"])
def test_a_folder_of_your_own(tmp_path: Path, pack: str) -> None:
    path = write_folder(tmp_path / "mine")
    if pack != "folder":
        path, top = tmp_path / "mine.zip", "" if pack == "zip" else "mine/"
        path.write_bytes(zipped({top + name: content for name, content in folder_members().items()}))
    data = read("folder", path, image_px=24)
    assert (data.classes, data.input_shape) == (2, (24, 24, 3))
    assert data.train_targets.tolist() == [0, 0, 1]
    assert data.test_targets.tolist() == [1]
    assert np.abs(data.train_inputs[:, 12, 12].astype(int) - [[200, 0, 0], [200, 0, 0], [0, 200, 0]]).max() < 3


def one_picture(folder: Path, image: Image.Image, **options: Any) -> NDArray[np.uint8]:
    """Write one picture of class cat, and read it as 16 × 16 pixels."""
    written = io.BytesIO()
    image.save(written, "PNG", **options)
    path = write_folder(folder, {f"{split}/cat/1.png": written.getvalue() for split in ("train", "test")})
    return read("folder", path, image_px=16).train_inputs[0]


def test_pictures_of_any_mode_become_upright_and_rgb(tmp_path: Path) -> None:
    grey = Image.fromarray(np.repeat(np.linspace(0, 65535, 16).astype(np.uint16)[None], 16, axis=0))
    assert one_picture(tmp_path, grey)[5, :, 1].tolist() == list(range(0, 256, 17))
    pixels, exif = np.zeros((16, 16, 3), np.uint8), Image.Exif()
    pixels[:8], exif[0x0112] = 255, 6  # turned clockwise, the upper half is on the right
    upright = one_picture(tmp_path, Image.fromarray(pixels), exif=exif)
    assert (upright[:, 8:] == 255).all()
    assert not upright[:, :8].any()
    assert one_picture(tmp_path, Image.new("RGBA", (16, 16), (200, 100, 50, 128)))[3, 3].tolist() == [100, 50, 25]
    assert not one_picture(tmp_path, Image.new("LA", (16, 16), (200, 0))).any()
    palette = Image.new("P", (16, 16), 1)
    palette.putpalette([0, 0, 0, 255, 255, 255])
    assert one_picture(tmp_path, palette).all()
    assert not one_picture(tmp_path, palette, transparency=1).any()


def test_a_subset_is_reproducible_nested_and_independent_of_the_other_split(tmp_path: Path) -> None:
    write_mnist(tmp_path)

    def numbers(seed: int = 1, **keys: int) -> list[list[int]]:
        data = read("mnist", tmp_path, seed, **keys)
        assert (data.train_inputs[:, 0, 0, 0] % 10 == data.train_targets).all()
        return [data.train_inputs[:, 0, 0, 0].tolist(), data.test_inputs[:, 0, 0, 0].tolist()]

    small, test = numbers(train_samples=12, test_samples=10)
    assert small == sorted(set(small))
    assert len(small) == 12
    assert numbers(train_samples=12, test_samples=10) == [small, test]
    assert numbers(seed=2, train_samples=12)[0] != small
    large, same_test = numbers(train_samples=25, test_samples=10)
    assert set(small) < set(large)
    assert same_test == test
    assert sentence("mnist", tmp_path, train_samples=41) == (
        'data.train_samples = 41, but data.kind = "mnist" has only 40: lower it, or leave it out to use all.'
    )


def test_a_subset_of_gtsrb_keeps_the_tracks_of_its_images(tmp_path: Path) -> None:
    data = read("gtsrb", write_gtsrb(tmp_path), train_samples=10)
    red, green = data.train_inputs[:, 8, 8, 0].astype(int), data.train_inputs[:, 8, 8, 1].astype(int)
    assert data.train_groups is not None
    assert data.train_groups.tolist() == (red * 100_000 + green).tolist()


def test_a_missing_file_is_named_with_its_folder_and_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VEFL_SIM_CACHE", str(tmp_path))
    folder = tmp_path / "data" / "mnist"
    folder.parent.mkdir()
    write_mnist(folder)
    assert len(read("mnist", "").train_targets) == 40
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    missing = f'data.kind = "mnist": t10k-labels-idx1-ubyte.gz is not in {folder}'
    get = 'get it with "python -m vefl_sim data get mnist"'
    assert sentence("mnist", folder) == f"{missing} (data.dir): {get} and leave data.dir empty."
    assert sentence("mnist", "") == f"{missing}: {get} or name its folder in data.dir."


@pytest.mark.parametrize("folder", ["/no/such/place", "x" * 300, "~nobodyxx/x", "a\0b"])
def test_an_impossible_dir_is_refused(folder: str) -> None:
    assert sentence("folder", folder).startswith(f"data.dir = {folder!r}")


def test_a_device_that_never_ends_is_no_zip(tmp_path: Path) -> None:
    (tmp_path / "mine.zip").symlink_to("/dev/zero")
    assert "it is not a file" in sentence("folder", tmp_path / "mine.zip")


# Bad files

IMAGES, LABELS, CIFAR = "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "cifar-10-binary.tar.gz"
TRAIN_ZIP, TEST_ZIP, TRUTH = "GTSRB_Final_Training_Images.zip", "GTSRB_Final_Test_Images.zip", "GTSRB_Final_Test_GT.zip"
HUGE = gzip.compress(struct.pack(">HBB3I", 0, 8, 3, 60_000, 2**16, 2**16))
WHOLE = gzip.decompress(idx(np.zeros((40, 16, 16), np.uint8)))
FRAME = "GTSRB/Final_Training/Images/00000/00000_00000.ppm"


def sparse(name: str, size: int) -> bytes:
    """A tar whose only member is a hole, in the form of GNU tar 1.0."""
    member = tarfile.TarInfo(name)
    member.pax_headers = {
        "GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": name, "GNU.sparse.realsize": str(size)
    }  # fmt: skip
    areas = b"1\n%d\n0\n" % size
    member.size = 512
    return member.tobuf(tarfile.PAX_FORMAT) + areas.ljust(512, b"\0") + bytes(1024)


def cifar_with(test_batch: bytes | None) -> bytes:
    members = {name: content for name, content in cifar_members().items() if not name.endswith("test_batch.bin")}
    return tar_gz(members if test_batch is None else members | {"test_batch.bin": test_batch})


@pytest.mark.parametrize(
    ("kind", "name", "content", "words"),
    [
        ("mnist", IMAGES, idx(np.zeros(40, np.uint8)), "is not an IDX file of bytes with 3 axes"),
        ("mnist", IMAGES, gzip.compress(WHOLE[:-1]), "does not have the 10240 values that it announces"),
        ("mnist", IMAGES, gzip.compress(WHOLE + b"x"), "does not have the 10240 values that it announces"),
        ("mnist", IMAGES, HUGE, "announces 257698037760000 values"),
        ("mnist", LABELS, idx(np.zeros(39, np.uint8)), "has 39 labels for 40 images"),
        ("mnist", LABELS, idx(np.full(40, 10, np.uint8)), "has a label 10"),
        ("cifar10", CIFAR, cifar_with(None), "has no test_batch.bin"),
        ("cifar10", CIFAR, cifar_with(bytes(3072)), "not whole records of 3073"),
        ("cifar10", CIFAR, cifar_with(b"\x0a" + bytes(3072)), "has a label 10"),
        ("cifar10", CIFAR, gzip.compress(sparse("test_batch.bin", 1 << 40)), "test_batch.bin that is sparse"),
        ("cifar10", CIFAR, tar_gz({str(n): bytes(1 << 25) for n in range(9)}), "unpacks to more than 268 MB"),
        ("gtsrb", TRAIN_ZIP, zipped({"readme": b""}), "has no images at the expected paths"),
        ("gtsrb", TRAIN_ZIP, zipped({FRAME.replace("00000/", "00043/"): picture((1, 2, 3))}), "names a class '00043'"),
        ("gtsrb", TRAIN_ZIP, zipped({FRAME: picture((1, 2, 3))[:-9]}), "00000_00000.ppm that cannot be read"),
        ("gtsrb", TEST_ZIP, zipped({"00000.ppm": picture((1, 2, 3))}), "has no image 00001.ppm"),
        ("gtsrb", TRUTH, zipped({"x.csv": b"a;b\n1;2\n"}), "without the columns Filename and ClassId"),
        ("gtsrb", TRUTH, zipped({"x.csv": b"Filename;ClassId\n00000.ppm\n"}), "names a class"),
    ],
)  # fmt: skip
def test_a_bad_file_is_named_with_what_is_wrong_and_the_fix(
    tmp_path: Path, kind: str, name: str, content: bytes, words: str
) -> None:
    (WRITERS[kind](tmp_path) / name).write_bytes(content)
    problem = sentence(kind, tmp_path)
    assert problem.startswith(f"{tmp_path / name} cannot be ")
    assert words in problem
    assert f"data get {kind}" in problem


MINE = folder_members()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (zipped(MINE | {"train/cat/big.png": bytes(33 << 20)}), "unpacks to more than 32 MB"),
        (zipped(MINE | {"train/cat/x.ppm": b"P6 9000 9000 255\n"}), "x.ppm of 9000 × 9000 pixels"),
        (zipped(MINE | {"train/cat/x.pgm": b"P5 1 1 65535\n\1\0"}), "x.pgm with more than 8 bits of grey"),
        (zipped(MINE | {"train/cat/x.png": b"no picture"}), "x.png that is not a picture"),
        (zipped(MINE | {"train/x.png": b""}), "has an image train/x.png, which is not at train/<class>/"),
        (zipped(MINE | {"test/cow/x.png": b""}), "has a class cow in test that is not in train"),
        (zipped(MINE, zipfile.ZIP_BZIP2), "neither stored nor deflated"),
        (zipped({"train/cat/x.png": picture((1, 1, 1))}), "has no images at test/<class>/<image>"),
    ],
)
def test_a_bad_zip_of_your_own(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "mine.zip"
    path.write_bytes(content)
    problem = sentence("folder", path)
    assert problem.startswith(f"{path} cannot be ")
    assert words in problem


def test_links_to_folders_and_images_are_followed(tmp_path: Path) -> None:
    write_folder(tmp_path / "mine")
    write_folder(tmp_path / "elsewhere", {"1.png": picture((0, 0, 200), "PNG")})
    (tmp_path / "mine" / "train" / "cow").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "mine" / "train" / "ox").symlink_to(tmp_path / "elsewhere")  # two links to one folder are not a cycle
    (tmp_path / "mine" / "test" / "dog" / "2.png").symlink_to(tmp_path / "elsewhere" / "1.png")
    data = read("folder", tmp_path / "mine")
    assert data.train_targets.tolist() == [0, 0, 1, 2, 3]
    assert data.test_targets.tolist() == [2, 2]


def test_bad_links_and_large_files_are_refused(tmp_path: Path) -> None:
    cats = write_folder(tmp_path) / "train" / "cat"
    (cats / "all").symlink_to("../..")
    assert "a link to a folder around it" in sentence("folder", tmp_path)
    (cats / "all").unlink()
    (cats / "x.png").symlink_to("gone.png")
    assert "cannot be read" in sentence("folder", tmp_path)
    (cats / "x.png").unlink()
    os.truncate(cats / "1.png", 1 << 40)
    assert "1.png of more than 32 MB" in sentence("folder", tmp_path)


@pytest.mark.parametrize("kind", WRITERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    which=st.integers(0, 3), position=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255), cut=st.booleans()
)
def test_corrupted_files_give_at_most_an_error_of_one_sentence(
    tmp_path: Path, kind: str, which: int, position: float, value: int, cut: bool
) -> None:
    files = sorted(WRITERS[kind](tmp_path).iterdir())
    file = files[which % len(files)]
    content = file.read_bytes()
    at = int(position * len(content))
    file.write_bytes(content[:at] if cut else content[:at] + bytes([value]) + content[at + 1 :])
    try:
        read(kind, tmp_path)
        assert not cut
    except ExperimentError as refused:
        [problem] = refused.problems
        assert str(tmp_path) in problem
        assert problem.endswith(".")
