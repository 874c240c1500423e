"""Public data sets: downloads from a server that imitates the failures of real ones; which files are complete."""

import gzip
import hashlib
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.learning.datasets.files import cifar_members, tar_gz, write_compact_gtsrb
from tests.learning.datasets.test_kinds import sparse
from vefl_sim.core.errors import BadInput
from vefl_sim.learning.datasets import public
from vefl_sim.learning.datasets.cifar10 import TEST, TRAIN
from vefl_sim.learning.datasets.gtsrb import COMPACT, GTSRB
from vefl_sim.learning.datasets.public import SOURCES, RemoteFile, download, files_of, inventory

CONTENT = bytes(range(256)) * 1000
STATUS = {"missing": 404, "forbidden": 403, "busy": 503}


class Server(ThreadingHTTPServer):
    """Answers each request with the next of its behaviours; the last one is repeated."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviours = ["good"]
        self.requested: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        behaviours = self.server.behaviours
        behaviour = behaviours.pop(0) if len(behaviours) > 1 else behaviours[0]
        self.server.requested.append(self.path)
        if behaviour in STATUS:
            self.send_error(STATUS[behaviour])
            return
        content = {"wrong": CONTENT[::-1], "truncated": CONTENT[:-100]}.get(behaviour, CONTENT)
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT if behaviour == "dies" else content)))
        self.end_headers()
        self.wfile.write(content[:1000] if behaviour == "dies" else content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pooch.core.time.sleep", lambda _: None)  # between two attempts
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def remote(*mirrors: str, name: str = "images.gz") -> RemoteFile:
    return RemoteFile(name, hashlib.md5(CONTENT).hexdigest(), mirrors)


def fetch(files: list[RemoteFile], folder: Path, retries: int = 1) -> None:
    """Download without a progress bar."""
    download(files, folder, lambda name: False, retries)


def refused(files: list[RemoteFile], folder: Path, retries: int = 1) -> str:
    with pytest.raises(BadInput) as caught:
        fetch(files, folder, retries)
    [problem] = caught.value.problems
    assert "\n" not in problem
    return problem


def test_a_file_is_fetched_once(server: Server, tmp_path: Path) -> None:
    for _ in range(2):
        fetch([remote(server.address)], tmp_path / "new" / "mnist")
    assert (tmp_path / "new" / "mnist" / "images.gz").read_bytes() == CONTENT
    assert server.requested == ["/images.gz"]
    assert (tmp_path / "new" / "mnist" / "images.gz").stat().st_mode & 0o777 == 0o644  # other users may read it, too


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("wrong", "digest of the file is wrong"),
        ("truncated", "digest of the file is wrong"),
        ("dies", "ChunkedEncodingError"),
        ("busy", "HTTPError, 503"),
        ("missing", "HTTPError, 404"),
    ],
)
def test_a_bad_download_changes_no_file_and_is_tried_again(
    server: Server, tmp_path: Path, behaviour: str, words: str
) -> None:
    (tmp_path / "images.gz").write_bytes(b"old")
    server.behaviours = [behaviour]
    problem = refused([remote(server.address)], tmp_path)
    assert problem.startswith(f"images.gz could not be downloaded to {tmp_path} ({server.address}")
    assert words in problem
    assert len(server.requested) == 2
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"old"]
    server.behaviours = [behaviour, "good"]
    fetch([remote(server.address)], tmp_path)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [CONTENT]


def test_the_next_mirror_is_tried_and_all_failures_are_reported(server: Server, tmp_path: Path) -> None:
    closed = "http://127.0.0.1:9/"
    fetch([remote(closed, server.address)], tmp_path, retries=0)
    assert (tmp_path / "images.gz").read_bytes() == CONTENT
    server.behaviours = ["wrong"]
    problem = refused([remote(closed, server.address, name="labels.gz")], tmp_path, retries=0)
    assert closed in problem
    assert server.address in problem


def test_complete_files_stay_when_a_later_one_fails(server: Server, tmp_path: Path) -> None:
    server.behaviours = ["good", "dies"]
    problem = refused([remote(server.address), remote(server.address, name="labels.gz")], tmp_path, retries=0)
    assert problem.startswith("labels.gz")
    assert [file.name for file in tmp_path.iterdir()] == ["images.gz"]


def test_a_folder_that_cannot_be_written_is_not_blamed_on_the_mirror(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for folder, reason in ((tmp_path / "file", "File exists"), (tmp_path / "file" / "mnist", "Not a directory")):
        assert refused([remote(server.address)], folder) == (
            f"{folder} cannot be written ({reason}): name another folder with --dir."
        )
    assert refused([remote(server.address)], Path("/proc/foo/mnist")).startswith("/proc/foo/mnist cannot be written (")
    assert server.requested == []


@pytest.mark.parametrize(("kind", "words"), [("signs", "drawn by the program"), ("minst", "no such data set")])
def test_a_data_set_that_cannot_be_downloaded_is_refused(kind: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        files_of(kind)


def test_every_source_has_digests_and_mirrors() -> None:
    assert list(SOURCES) == ["mnist", "fashion-mnist", "cifar10", "gtsrb"]
    for file in (file for files in SOURCES.values() for file in files):
        assert len(bytes.fromhex(file.md5)) == 16
        assert all(mirror.startswith("http") and mirror.endswith("/") for mirror in file.mirrors)


# Which files are complete

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
        gzip.compress(gzip.decompress(tar_gz(BATCHES)), compresslevel=1),
    ],
    ids=["whole", "batches", "level 1"],
)
def test_an_archive_of_the_published_files_is_complete(cifar: Path, packed: bytes) -> None:
    assert hashlib.md5(packed).hexdigest() != archive().md5
    assert state_of(cifar, packed) == "complete"


def test_the_published_archive_is_not_unpacked(cifar: Path) -> None:
    """The digest of the file is enough: this one is not even an archive."""
    assert state_of(cifar, b"as published") == "complete"


@pytest.mark.parametrize(
    "content",
    [
        tar_gz(BATCHES | {TEST: bytes([BATCHES[TEST][0] ^ 1]) + BATCHES[TEST][1:]}),
        tar_gz({name: content for name, content in BATCHES.items() if name != TEST}),
        tar_gz(BATCHES | {f"again/{TEST}": BATCHES[TEST]}),
        tar_gz(BATCHES)[:-9],
        tar_gz(BATCHES)[:-8] + bytes(8),
        gzip.compress(sparse(TEST, 1 << 40)),
        gzip.compress(b"no tar" * 1000),
        b"no gzip",
        b"",
    ],
    ids=["one byte", "one less", "one twice", "cut short", "wrong sum", "sparse", "no tar", "no gzip", "empty"],
)
def test_an_incomplete_archive_is_damaged(cifar: Path, content: bytes) -> None:
    assert state_of(cifar, content) == f"damaged, wrong digest of {NAME}"


def test_a_complete_file_is_not_downloaded_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(tar_gz(BATCHES))
    fetch([archive(server.address)], tmp_path)
    assert server.requested == []


def test_the_archive_has_a_digest_for_each_batch_that_is_read() -> None:
    [file] = SOURCES["cifar10"]
    assert set(file.inside) == {*TRAIN, TEST}
    assert {len(bytes.fromhex(md5)) for md5 in file.inside.values()} == {16}


def test_the_images_in_compact_zips_of_gtsrb_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, test_zip = (write_compact_gtsrb(tmp_path / "gtsrb") / name for name in COMPACT)
    counts = "4 of 39209 training and 1 of 12630 test images"
    assert state(tmp_path, "gtsrb") == f"incomplete, in compact form: {counts}"
    monkeypatch.setattr(public, "GTSRB", replace(GTSRB, train_samples=4, test_samples=1))
    assert state(tmp_path, "gtsrb") == "complete, in compact form: 4 of 4 training and 1 of 1 test images"
    test_zip.unlink()
    assert state(tmp_path, "gtsrb") == f"incomplete, in compact form: without {test_zip.name}"


def test_a_compact_zip_with_a_wrong_byte_in_an_image_is_damaged(tmp_path: Path) -> None:
    train_zip = write_compact_gtsrb(tmp_path / "gtsrb") / COMPACT[0]
    with zipfile.ZipFile(train_zip) as archive:
        first = archive.infolist()[0]
    content = bytearray(train_zip.read_bytes())
    content[first.header_offset + 30 + len(first.filename) + first.compress_size // 2] ^= 1
    train_zip.write_bytes(content)
    assert state(tmp_path, "gtsrb") == f"damaged, in compact form: {train_zip.name} cannot be read"
    train_zip.write_bytes(b"no zip")
    assert state(tmp_path, "gtsrb") == f"damaged, in compact form: {train_zip.name} cannot be read"
