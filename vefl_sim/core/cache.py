"""Where compiled code and downloaded data are kept between runs."""

import os
from collections.abc import Mapping
from pathlib import Path


def cache_directory(environment: Mapping[str, str]) -> Path:
    """VEFL_SIM_CACHE, else vefl_sim in XDG_CACHE_HOME, else in ~/.cache."""
    if chosen := environment.get("VEFL_SIM_CACHE"):
        return Path(chosen)
    home = environment.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "vefl_sim"


def writable(directory: Path) -> bool:
    """Make a directory, if that is possible, and say whether it can be used."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK)
