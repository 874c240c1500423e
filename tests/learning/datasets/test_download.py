"""Downloads from a local server that imitates the failures of real servers."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from vefl_sim.core.errors import BadInput
from vefl_sim.learning.datasets.files.download import _short, download, files_of
from vefl_sim.learning.datasets.files.sources import SOURCES, RemoteFile

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


def refused(files: list[RemoteFile], folder: Path, retries: int = 1) -> str:
    with pytest.raises(BadInput) as caught:
        download(files, folder, retries=retries)
    [problem] = caught.value.problems
    assert "\n" not in problem
    return problem


def test_a_file_is_fetched_once(server: Server, tmp_path: Path) -> None:
    for _ in range(2):
        download([remote(server.address)], tmp_path / "new" / "mnist")
    assert (tmp_path / "new" / "mnist" / "images.gz").read_bytes() == CONTENT
    assert server.requested == ["/images.gz"]
    assert (tmp_path / "new" / "mnist" / "images.gz").stat().st_mode & 0o777 == 0o644  # other users may read it, too


def test_an_existing_damaged_file_is_replaced(server: Server, tmp_path: Path) -> None:
    (tmp_path / "images.gz").write_bytes(CONTENT[:10])
    download([remote(server.address)], tmp_path)
    assert (tmp_path / "images.gz").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("behaviour", "words", "requests"),
    [
        ("wrong", "sends a file whose digest is wrong", 2),
        ("truncated", "sends a file whose digest is wrong", 2),
        ("dies", "ChunkedEncodingError", 2),
        ("busy", "HTTPError, 503", 2),
        ("missing", "HTTPError, 404", 1),
        ("forbidden", "HTTPError, 403", 1),
    ],
)
def test_a_bad_download_leaves_no_file_and_reports_the_reason(
    server: Server, tmp_path: Path, behaviour: str, words: str, requests: int
) -> None:
    server.behaviours = [behaviour]
    problem = refused([remote(server.address)], tmp_path)
    assert problem.startswith(f"images.gz could not be downloaded to {tmp_path} ({server.address}")
    assert words in problem
    assert len(server.requested) == requests  # retried unless the server refuses the file
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("behaviour", ["wrong", "truncated", "dies", "busy"])
def test_a_server_that_recovers_is_tried_again(server: Server, tmp_path: Path, behaviour: str) -> None:
    server.behaviours = [behaviour, behaviour, "good"]
    download([remote(server.address)], tmp_path, retries=2)
    assert [file.name for file in tmp_path.iterdir()] == ["images.gz"]
    assert (tmp_path / "images.gz").read_bytes() == CONTENT


def test_a_bad_download_does_not_change_an_existing_file(server: Server, tmp_path: Path) -> None:
    (tmp_path / "images.gz").write_bytes(b"old")
    server.behaviours = ["dies"]
    refused([remote(server.address)], tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["images.gz"]
    assert (tmp_path / "images.gz").read_bytes() == b"old"


def test_the_next_mirror_is_tried_and_all_failures_are_reported(server: Server, tmp_path: Path) -> None:
    closed = "http://127.0.0.1:9/"
    download([remote(closed, server.address)], tmp_path, retries=0)
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


def test_an_invalid_address_is_not_reported_as_a_wrong_digest(tmp_path: Path) -> None:
    assert "InvalidURL" in refused([remote("http://:80/")], tmp_path, retries=0)


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


def test_an_error_without_a_message_is_reported_by_its_type() -> None:
    assert _short(OSError()) == "OSError"
    assert _short(OSError("x" * 200)) == f"OSError, {'x' * 117}…"


def test_every_source_has_digests_and_mirrors() -> None:
    assert list(SOURCES) == ["mnist", "fashion-mnist", "cifar10", "gtsrb"]
    for file in (file for files in SOURCES.values() for file in files):
        assert len(bytes.fromhex(file.md5)) == 16
        assert all(mirror.startswith("http") and mirror.endswith("/") for mirror in file.mirrors)
