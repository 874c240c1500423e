"""Run directories may come from strangers, so no code in them is ever imported.

This module imports only `os` and `sys`, which Python has in memory before it looks into the current directory. Under
`python -m vefl_sim` that directory comes first on the path, and a run may hold a `typing.py` of its own.
"""

import os
import sys

RUN_FILES = ("resolved.toml", "versions.json")
"""Files that show that a directory is a run; one of them is enough."""


def run_directory_above(path: str) -> str | None:
    """The run directory that holds a file or folder, at any depth; None if it is in none.

    The path counts as it is written and with its symbolic links resolved, so that a link leads neither in nor out.
    """
    for folder in (os.path.abspath(path), os.path.realpath(path)):
        while True:
            if any(os.path.lexists(os.path.join(folder, name)) for name in RUN_FILES):
                return folder
            folder, inner = os.path.dirname(folder), folder
            if folder == inner:
                break
    return None


def holds_runs(folder: str) -> bool:
    """Whether a folder holds run directories, as an unpacked archive does."""
    with os.scandir(folder) as entries:
        return any(os.path.lexists(os.path.join(entry.path, name)) for entry in entries for name in RUN_FILES)


def leave_run_directory() -> None:
    """Take the current directory off the path if it is in a run, or holds runs, and Python was started with `-m`.

    What Python imports before it calls us cannot be refused here: a folder `vefl_sim` or `importlib` in the run itself.
    The command `vefl_sim` and `python -P -m vefl_sim` do not have the current directory on the path at all.
    """
    if sys.argv[:1] != ["-m"]:  # as long as Python searches for the module to run
        return
    try:
        current = os.getcwd()
        foreign = run_directory_above(current) or holds_runs(current)
    except OSError:  # it has been deleted, or may not be read
        return
    if foreign:
        sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or current) != os.path.realpath(current)]
