"""Public data sets: downloads from a server that imitates the failures of real ones; which files are complete."""

import gzip
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.learning.datasets.files import cifar_members, tar_gz, write_compact_gtsrb
from vefl_sim.core.errors import BadInput
from vefl_sim.learning.datasets import public
from vefl_sim.learning.datasets.cifar10 import TEST
from vefl_sim.learning.datasets.public import RemoteFile, download, files_of, inventory

CONTENT = bytes(range(256)) * 1000


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
        if behaviour == "busy":
            self.send_error(503)
            return
        content = CONTENT[::-1] if behaviour == "wrong" else CONTENT
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:1000] if behaviour == "dies" else content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(public.time, "sleep", lambda _: None)  # between two attempts
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def remote(*mirrors: str, name: str = "images.gz") -> RemoteFile:
    return RemoteFile(name, hashlib.md5(CONTENT).hexdigest(), mirrors)


def fetch(folder: Path, *files: RemoteFile, retries: int = 1) -> None:
    """Download without a progress bar."""
    download(files, folder, lambda name, size: lambda received: None, retries)


def refused(folder: Path, *files: RemoteFile, retries: int = 1) -> str:
    with pytest.raises(BadInput) as caught:
        fetch(folder, *files, retries=retries)
    [problem] = caught.value.problems
    assert "\n" not in problem
    return problem


def test_a_file_is_fetched_once(server: Server, tmp_path: Path) -> None:
    for _ in range(2):
        fetch(tmp_path / "new" / "mnist", remote(server.address))
    assert (tmp_path / "new" / "mnist" / "images.gz").read_bytes() == CONTENT
    assert server.requested == ["/images.gz"]


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [("wrong", "digest of the file is wrong"), ("dies", "ChunkedEncodingError"), ("busy", "503")],
)
def test_a_bad_download_changes_no_file_and_is_tried_again(
    server: Server, tmp_path: Path, behaviour: str, words: str
) -> None:
    (tmp_path / "images.gz").write_bytes(b"old")
    server.behaviours = [behaviour]
    problem = refused(tmp_path, remote(server.address))
    assert problem.startswith(f"images.gz could not be downloaded to {tmp_path} ({server.address}")
    assert words in problem
    assert len(server.requested) == 2
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"old"]
    server.behaviours = [behaviour, "good"]
    fetch(tmp_path, remote(server.address))
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [CONTENT]


def test_the_next_mirror_is_tried_and_all_failures_are_reported(server: Server, tmp_path: Path) -> None:
    closed = "http://127.0.0.1:9/"
    fetch(tmp_path, remote(closed, server.address), retries=0)
    assert (tmp_path / "images.gz").read_bytes() == CONTENT
    server.behaviours = ["wrong"]
    problem = refused(tmp_path, remote(closed, server.address, name="labels.gz"), retries=0)
    assert closed in problem
    assert server.address in problem
    assert [file.name for file in tmp_path.iterdir()] == ["images.gz"]  # what was complete stays


def test_a_folder_that_cannot_be_written_is_not_blamed_on_the_mirror(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    problem = refused(tmp_path / "file", remote(server.address))
    assert problem == f"{tmp_path / 'file'} cannot be written: name another folder with --dir."
    assert server.requested == []


def test_a_data_set_that_cannot_be_downloaded_is_refused() -> None:
    with pytest.raises(BadInput, match="no such data set to download; choose one of mnist"):
        files_of("signs")


BATCHES = {Path(name).name: content for name, content in cifar_members().items() if name.endswith(".bin")}


@pytest.mark.parametrize(
    ("content", "is_complete"),
    [
        (tar_gz(cifar_members()), True),
        (gzip.compress(gzip.decompress(tar_gz(BATCHES)), compresslevel=1), True),  # only the batches
        (b"as published", True),  # the digest of the file is enough: this one is not even an archive
        (tar_gz(BATCHES | {TEST: bytes([BATCHES[TEST][0] ^ 1]) + BATCHES[TEST][1:]}), False),
        (tar_gz({name: content for name, content in BATCHES.items() if name != TEST}), False),
        (tar_gz(BATCHES)[:-9], False),
        (tar_gz(BATCHES)[:-8] + bytes(8), False),
    ],
    ids=["whole", "batches", "published", "one byte", "one less", "cut short", "wrong sum"],
)
def test_an_archive_of_the_published_files_is_complete(tmp_path: Path, content: bytes, is_complete: bool) -> None:
    digests = {name: hashlib.md5(content).hexdigest() for name, content in BATCHES.items()}
    archive = RemoteFile("cifar.tar.gz", hashlib.md5(b"as published").hexdigest(), (), inside=digests)
    (tmp_path / archive.name).write_bytes(content)
    assert archive.is_in(tmp_path) == is_complete


def test_the_compact_zips_of_gtsrb_have_digests_of_their_own(tmp_path: Path) -> None:
    first, second = sorted(write_compact_gtsrb(tmp_path / "gtsrb").iterdir())
    damaged = f"damaged, wrong digest of {second.name}, {first.name}, in compact form"
    assert inventory(tmp_path)[-1].state == damaged
    first.unlink()
    assert inventory(tmp_path)[-1].state == f"incomplete, without {first.name}, in compact form"
