"""Which files count as complete: an archive repacked from the published files, and zips that have all images."""

import gzip
import hashlib
import zipfile
from pathlib import Path

import pytest

from tests.learning.datasets.files import cifar_members, tar_gz, write_compact_gtsrb
from tests.learning.datasets.test_download import Server, server
from tests.learning.datasets.test_kinds import sparse
from vefl_sim.learning.datasets import compact_gtsrb
from vefl_sim.learning.datasets.cifar10 import TEST, TRAIN
from vefl_sim.learning.datasets.files import tar_members
from vefl_sim.learning.datasets.files.download import download
from vefl_sim.learning.datasets.files.inventory import inventory
from vefl_sim.learning.datasets.files.sources import SOURCES, RemoteFile

__all__ = ["server"]  # a fixture

NAME = "cifar-10-binary.tar.gz"
BATCHES = {Path(name).name: content for name, content in cifar_members().items() if name.endswith(".bin")}
INSIDE = {name: hashlib.md5(content).hexdigest() for name, content in BATCHES.items()}


def archive(*mirrors: str) -> RemoteFile:
    """A small CIFAR-10 whose published archive, with this digest, does not exist here."""
    return RemoteFile(NAME, hashlib.md5(b"as published").hexdigest(), mirrors, inside=INSIDE)


def state(parent: Path, kind: str) -> str:
    [holding] = [holding for holding in inventory(parent) if holding.kind == kind]
    return holding.state


@pytest.fixture
def cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Path of the archive, whose batches have known digests."""
    monkeypatch.setitem(SOURCES, "cifar10", (archive(),))
    (tmp_path / "cifar10").mkdir()
    return tmp_path / "cifar10" / NAME


def state_of(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return state(path.parents[1], "cifar10")


@pytest.mark.parametrize(
    "packed",
    [
        tar_gz(cifar_members()),
        tar_gz(BATCHES),  # without their folder and the names of the classes
        tar_gz(dict(reversed(BATCHES.items()))),
        gzip.compress(gzip.decompress(tar_gz(BATCHES)), compresslevel=1),
    ],
    ids=["whole", "batches", "reversed", "level 1"],
)
def test_an_archive_of_the_published_files_is_complete(cifar: Path, packed: bytes) -> None:
    assert hashlib.md5(packed).hexdigest() != archive().md5
    assert state_of(cifar, packed) == "complete"


def test_the_published_archive_is_not_unpacked(cifar: Path) -> None:
    """The digest of the file is enough: this one is not even an archive."""
    assert state_of(cifar, b"as published") == "complete"


@pytest.mark.parametrize("name", [*TRAIN, TEST])
def test_an_archive_with_one_wrong_byte_is_damaged(cifar: Path, name: str) -> None:
    wrong = bytes([BATCHES[name][0] ^ 1]) + BATCHES[name][1:]
    assert state_of(cifar, tar_gz(BATCHES | {name: wrong})) == f"damaged, wrong digest of {NAME}"


@pytest.mark.parametrize(
    "content",
    [
        tar_gz({name: content for name, content in BATCHES.items() if name != TEST}),
        tar_gz(BATCHES | {f"again/{TEST}": BATCHES[TEST]}),
        tar_gz(BATCHES)[:-9],
        tar_gz(BATCHES)[:-8] + bytes(8),
        gzip.compress(sparse(TEST, 1 << 40)),
        gzip.compress(b"no tar" * 1000),
        b"no gzip",
        b"",
    ],
    ids=["one less", "one twice", "cut short", "wrong sum", "sparse", "no tar", "no gzip", "empty"],
)
def test_an_incomplete_archive_is_damaged(cifar: Path, content: bytes) -> None:
    assert state_of(cifar, content) == f"damaged, wrong digest of {NAME}"


def test_an_archive_that_unpacks_to_too_much_is_damaged(cifar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tar_gz({**BATCHES, "bomb": bytes(1 << 20)})
    assert state_of(cifar, packed) == "complete"
    monkeypatch.setattr(tar_members, "_MAX_BYTES", 1 << 20)
    assert state_of(cifar, packed) == f"damaged, wrong digest of {NAME}"


def test_a_complete_file_is_not_downloaded_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(tar_gz(BATCHES))
    download([archive(server.address)], tmp_path)
    assert server.requested == []


def test_the_archive_has_a_digest_for_each_batch_that_is_read() -> None:
    [file] = SOURCES["cifar10"]
    assert set(file.inside) == {*TRAIN, TEST}
    assert {len(bytes.fromhex(md5)) for md5 in file.inside.values()} == {16}


def test_the_images_in_compact_zips_of_gtsrb_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, test_zip = (write_compact_gtsrb(tmp_path / "gtsrb") / name for name in compact_gtsrb.COMPACT)
    counts = "4 of 39209 training and 1 of 12630 test images"
    assert state(tmp_path, "gtsrb") == f"incomplete, in compact form: {counts}"
    monkeypatch.setattr(compact_gtsrb, "TRAIN_IMAGES", 4)
    monkeypatch.setattr(compact_gtsrb, "TEST_IMAGES", 1)
    assert state(tmp_path, "gtsrb") == "complete, in compact form: 4 of 4 training and 1 of 1 test images"
    test_zip.unlink()
    assert state(tmp_path, "gtsrb") == f"incomplete, in compact form: without {test_zip.name}"


def test_a_compact_zip_with_a_wrong_byte_in_an_image_is_damaged(tmp_path: Path) -> None:
    train_zip = write_compact_gtsrb(tmp_path / "gtsrb") / compact_gtsrb.COMPACT[0]
    with zipfile.ZipFile(train_zip) as archive:
        first = archive.infolist()[0]
    content = bytearray(train_zip.read_bytes())
    content[first.header_offset + 30 + len(first.filename) + first.compress_size // 2] ^= 1
    train_zip.write_bytes(content)
    assert state(tmp_path, "gtsrb") == f"damaged, in compact form: {train_zip.name} cannot be read"
    train_zip.write_bytes(b"no zip")
    assert state(tmp_path, "gtsrb") == f"damaged, in compact form: {train_zip.name} cannot be read"
