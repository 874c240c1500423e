"""The files and folders of a run directory, which may come from a stranger: each must be what a run writes there.

A link would lead what is written to a run, or deleted from it, out of its folder; a pipe in the place of a file would
hold up whoever opens it.
"""

import os
from contextlib import suppress
from pathlib import Path

INITIAL = ("experiment.toml", "resolved.toml", "versions.json")
"""Files that a run has from its beginning."""
FILES = (
    *INITIAL,
    "summary.json",
    "confusion.json",
    "model.npz",
    "model.json",
    "sessions.jsonl",
    "DONE",
    "FAILED",
    "LOCK",
)
FOLDERS = ("tables", "parts", "checkpoints")
_ALL_FOLDERS = (*FOLDERS, "models", "traffic", "tensorboard")


def fault_of_entries(run: Path) -> str | None:
    """The first entry of a run directory that is not what a run writes there, as a phrase; None if all are."""
    try:
        for entry in _entries(run):
            if fault := _fault(entry):
                return f"{entry.path} {fault}"
        for folder in _ALL_FOLDERS:
            with suppress(FileNotFoundError):  # it has none, or the process that works on it has just removed it
                entries = _entries(os.path.join(run, folder))
                if other := next((entry for entry in entries if not entry.is_file(follow_symlinks=False)), None):
                    return f"{other.path} is not a file"
    except OSError as error:
        return f"{error.filename or run} cannot be read: {error.strerror}"
    return None


def _fault(entry: os.DirEntry[str]) -> str | None:
    is_file, is_folder = entry.name in FILES, entry.name in _ALL_FOLDERS
    if entry.is_symlink() and (is_file or is_folder):
        return "is a link, and a run is changed only within its folder"
    if is_file and not entry.is_file():
        return "is not a file"
    if is_folder and not entry.is_dir():
        return "is not a folder"
    readable = os.access(entry.path, os.R_OK) or not os.access(entry.path, os.F_OK)  # it may just have been removed
    return None if readable or not is_file or entry.name == "LOCK" else "cannot be read: Permission denied"


def _entries(folder: Path | str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return list(entries)
