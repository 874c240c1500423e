"""Download of data sets: each file is checked by its digest before it gets its final name."""

import logging
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import pooch

from vefl_sim.core.errors import BadInput
from vefl_sim.experiment.kinds import DATA_SETS
from vefl_sim.experiment.plugins import load_part
from vefl_sim.learning.datasets.files.sources import SOURCES, RemoteFile

_TIMEOUT_S = 30.0  # for a server that does not respond


class DownloadWatcher(Protocol):
    """Provider of progress bars for downloads."""

    def bar(self, name: str) -> Any:
        """Create a progress bar as pooch expects it, with an attribute `total` and update(bytes), reset(), close()."""
        ...


def files_of(kind: str) -> tuple[RemoteFile, ...]:
    """Files to download for a data set."""
    if kind in SOURCES:
        return SOURCES[kind]
    known = f"choose one of {', '.join(SOURCES)}"
    if kind in DATA_SETS and (declared := load_part("data.kind", kind)).any_number | declared.from_traffic:
        how = "recorded in the traffic of a run" if declared.from_traffic else "drawn by the program"
        raise BadInput(f"data get {kind}: {kind} are {how} and need no download; {known}.")
    raise BadInput(f"data get {kind}: there is no such data set to download; {known}.")


def download(
    files: Sequence[RemoteFile], folder: Path, *, watcher: DownloadWatcher | None = None, retries: int = 3
) -> None:
    """Download the files into the folder, except those that it already has undamaged.

    A file is written under a temporary name and renamed when its digest is right, so files in the folder are complete.
    Each mirror is tried 1 + `retries` times, unless it refuses the file.
    """
    pooch.get_logger().setLevel(logging.WARNING)
    missing = [file for file in files if not file.is_in(folder)]
    if missing:
        _require_writable(folder)
    for file in missing:
        failures = []
        for mirror in file.mirrors:
            if not (failure := _fetch(file, mirror, folder, watcher, retries)):
                break
            failures.append(failure)
        else:
            raise BadInput(
                f"{file.name} could not be downloaded to {folder} ({'; '.join(failures)}): try again later; complete "
                "files are kept."
            )


class _Refused(OSError):
    """The server refuses the file, so retrying is useless. Pooch retries only after errors of requests."""


def _require_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BadInput(f"{folder} cannot be written ({error.strerror}): name another folder with --dir.") from None


def _fetch(file: RemoteFile, mirror: str, folder: Path, watcher: DownloadWatcher | None, retries: int) -> str:
    """Download a file from one mirror; return why it failed, or an empty string."""
    source = pooch.create(folder, mirror, registry={file.name: f"md5:{file.md5}"}, retry_if_failed=retries)
    try:
        source.fetch(file.name, downloader=_downloader(file.name, watcher))
    except OSError as error:  # errors of requests are OSErrors; some of them are also ValueErrors
        return f"{mirror}: {error if isinstance(error, _Refused) else _short(error)}"
    except ValueError:  # pooch itself raises it only for a wrong digest
        return f"{mirror} sends a file whose digest is wrong"
    return ""


def _downloader(name: str, watcher: DownloadWatcher | None) -> Callable[[str, str, object], None]:
    """The function that pooch calls for each attempt."""

    def fetch(url: str, output_file: str, source: object) -> None:
        bar = watcher.bar(name) if watcher else False
        headers = {"Accept-Encoding": "identity"}  # otherwise a server may decompress a .gz file
        download_once = pooch.HTTPDownloader(bar, chunk_size=1 << 16, timeout=_TIMEOUT_S, headers=headers)
        try:
            download_once(url, output_file, source)
        except OSError as error:
            if 400 <= _status(error) < 500:
                raise _Refused(_short(error)) from error
            raise
        Path(output_file).chmod(0o644)  # temporary files are private; the final file is not

    return fetch


def _status(error: OSError) -> int:
    """HTTP status of the server's response, or 0 without a response; untyped, because requests has no types."""
    return getattr(getattr(error, "response", None), "status_code", 0)


def _short(error: OSError) -> str:
    """Type and first line of an error, without the nested objects that network libraries put into messages."""
    message = error.strerror or str(error).partition("\n")[0]
    message = f"{message[:117]}…" if len(message) > 120 else message
    return f"{type(error).__name__}, {message}" if message else type(error).__name__
