"""Files of a data set from the network: checked by digest before they appear under their names."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import pooch

from vefl_sim.errors import BadInput
from vefl_sim.learning.datasets.sources import SOURCES, RemoteFile

_WAIT_S = 30.0  # for a server that says nothing


class Watcher(Protocol):
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


def download(files: Sequence[RemoteFile], folder: Path, *, watcher: Watcher | None = None, retries: int = 3) -> None:
    """Put the files into the folder, but for those that are there already and right.

    A file is written under another name, and renamed when its digest is right: whatever is there is complete. Each
    mirror is asked 1 + `retries` times.
    """
    pooch.get_logger().setLevel(logging.WARNING)
    for file in files:
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


def _fetch(file: RemoteFile, mirror: str, folder: Path, watcher: Watcher | None, retries: int) -> str:
    """Why it did not work, or nothing."""
    shelf = pooch.create(folder, mirror, registry={file.name: f"md5:{file.md5}"}, retry_if_failed=retries)
    try:
        shelf.fetch(file.name, downloader=_downloader(file.name, watcher))
    except ValueError:  # the only one that pooch raises itself
        return f"{mirror} gives a file whose digest is wrong"
    except OSError as error:  # those of requests are OSErrors, too
        return f"{mirror}: {_short(error)}"
    return ""


def _downloader(name: str, watcher: Watcher | None) -> Callable[[str, str, object], None]:
    """What pooch calls for each attempt."""

    def fetch(url: str, output_file: str, shelf: object) -> None:
        bar = watcher.bar(name) if watcher else False
        headers = {"Accept-Encoding": "identity"}  # or a server may unpack a .gz on the way
        pooch.HTTPDownloader(bar, chunk_size=1 << 16, timeout=_WAIT_S, headers=headers)(url, output_file, shelf)
        Path(output_file).chmod(0o644)  # it is private, being temporary, and will not be

    return fetch


def _short(error: OSError) -> str:
    """The first line, without the nested objects that network libraries put into their messages."""
    told = error.strerror or str(error).partition("\n")[0]
    told = f"{told[:117]}…" if len(told) > 120 else told
    return f"{type(error).__name__}, {told}" if told else type(error).__name__
