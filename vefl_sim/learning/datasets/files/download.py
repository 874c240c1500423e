"""Files of a data set from the network: checked by digest before they appear under their names."""

import logging
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import pooch

from vefl_sim.core.errors import BadInput
from vefl_sim.learning.datasets.files.sources import SOURCES, RemoteFile

_WAIT_S = 30.0  # for a server that says nothing


class DownloadWatcher(Protocol):
    """Hears how a download goes on."""

    def bar(self, name: str) -> Any:
        """A progress bar as pooch wants it: an attribute `total`, and update(bytes), reset(), close()."""
        ...


def files_of(kind: str) -> tuple[RemoteFile, ...]:
    """What there is to download."""
    if kind in SOURCES:
        return SOURCES[kind]
    known = f"there are {', '.join(SOURCES)}"
    if kind == "signs":
        raise BadInput(f"data get signs: they are drawn by the program, and nothing is downloaded; {known}.")
    raise BadInput(f"data get {kind}: there is no such data set to download; {known}.")


def download(
    files: Sequence[RemoteFile], folder: Path, *, watcher: DownloadWatcher | None = None, retries: int = 3
) -> None:
    """Put the files into the folder, but for those that are there already and right.

    A file is written under another name, and renamed when its digest is right: whatever is there is complete. Each
    mirror is asked 1 + `retries` times, unless it says that it will not give the file.
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
                f"{file.name} could not be downloaded to {folder} ({'; '.join(failures)}): try again later; files that "
                "are complete stay."
            )


class _Refused(OSError):
    """The server will not give the file however often it is asked. Pooch asks again after errors of requests only."""


def _require_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BadInput(f"{folder} cannot be written ({error.strerror}): name another folder with --dir.") from None


def _fetch(file: RemoteFile, mirror: str, folder: Path, watcher: DownloadWatcher | None, retries: int) -> str:
    """Why it did not work, or nothing."""
    shelf = pooch.create(folder, mirror, registry={file.name: f"md5:{file.md5}"}, retry_if_failed=retries)
    try:
        shelf.fetch(file.name, downloader=_downloader(file.name, watcher))
    except OSError as error:  # those of requests are OSErrors, and some of them ValueErrors, too
        return f"{mirror}: {error if isinstance(error, _Refused) else _short(error)}"
    except ValueError:  # the only one that pooch raises itself
        return f"{mirror} gives a file whose digest is wrong"
    return ""


def _downloader(name: str, watcher: DownloadWatcher | None) -> Callable[[str, str, object], None]:
    """What pooch calls for each attempt."""

    def fetch(url: str, output_file: str, shelf: object) -> None:
        bar = watcher.bar(name) if watcher else False
        headers = {"Accept-Encoding": "identity"}  # or a server may unpack a .gz on the way
        download_once = pooch.HTTPDownloader(bar, chunk_size=1 << 16, timeout=_WAIT_S, headers=headers)
        try:
            download_once(url, output_file, shelf)
        except OSError as error:
            if 400 <= _status(error) < 500:
                raise _Refused(_short(error)) from error
            raise
        Path(output_file).chmod(0o644)  # it is private, being temporary, and will not be

    return fetch


def _status(error: OSError) -> int:
    """What the server answered, or 0 if it did not; requests has no types, so this looks without them."""
    return getattr(getattr(error, "response", None), "status_code", 0)


def _short(error: OSError) -> str:
    """The first line, without the nested objects that network libraries put into their messages."""
    message = error.strerror or str(error).partition("\n")[0]
    message = f"{message[:117]}…" if len(message) > 120 else message
    return f"{type(error).__name__}, {message}" if message else type(error).__name__
