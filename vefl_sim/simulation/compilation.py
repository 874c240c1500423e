"""Compiles the kernels of the radio network in a second process, while the first one prepares traffic, data and model.

Numba compiles one function at a time, and those kernels take as long as all the rest together. The second process
simulates a round without traffic and learning (`rehearsal.py`), which leaves the kernels in the cache of
`core/kernel.py`. If anything goes wrong there, the first process compiles them itself, at their first call.
"""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from vefl_sim.core.kernel import COMPILING, cache_folder
from vefl_sim.core.memory import cores
from vefl_sim.core.progress import report
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.plugins import declaration, is_part, load_part
from vefl_sim.experiment.toml import as_toml
from vefl_sim.optimize.rat.allocate import needs_large

_HERE = str(Path(__file__).parents[2])  # vefl_sim itself; the second process needs no module of the user
_LONGEST_S = 300.0  # many times what compiling takes: then the second process is stuck


class Compilation:
    """The second process, if one is needed; as a context manager, ends it if the preparation fails."""

    def __init__(self, experiment: Experiment) -> None:
        """Start the process unless all kernels are in the cache, or the run may use one core only."""
        self._marker = _marker(experiment)
        self._process: subprocess.Popen[bytes] | None = None
        if self._marker and not self._marker.exists() and (experiment.learning.threads or cores()) > 1:
            with suppress(OSError):  # no process can be started
                self._process = _start(experiment)
                report(COMPILING)

    @property
    def is_running(self) -> bool:
        """Whether the first process has time to compile something else."""
        return self._process is not None and self._process.poll() is None

    def wait(self) -> None:
        """Wait until the kernels are in the cache, and remember that they are."""
        if self._process and self._marker:
            report(COMPILING)
            with suppress(OSError, subprocess.TimeoutExpired):  # the disk is full: the next run rehearses again
                if self._process.wait(_LONGEST_S) == 0:
                    self._marker.touch()

    def __enter__(self) -> "Compilation":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._process:
            self._process.kill()  # does nothing after its end
            self._process.wait()


def _marker(experiment: Experiment) -> Path | None:
    """A file that exists once the kernels of such experiments are in the cache; None if there is nothing to rehearse.

    User-defined parts are not run in a second process, because nobody knows what else they do.
    """
    scheme, rat, radio = experiment.scheme, experiment.rat, experiment.radio
    if any(map(is_part, (scheme.kind, experiment.mac.scheduler, rat.method, radio.channel))):
        return None
    uses_network = scheme.constrained and not declaration("scheme.kind", scheme.kind, "trains_centrally", False)
    code = load_part("rat.method", rat.method).code
    folder = cache_folder()
    if not uses_network or code is None or folder is None:
        return None
    kinds = {
        "large": needs_large(code, radio.prbs) and radio.power == "optimized",
        "csi": radio.csi_delay_slots,
        "fixed": radio.power != "optimized",
        "paths": radio.fading in ("jakes", "rician"),
    }
    return folder / "-".join(["rehearsed", *(kind for kind, needed in kinds.items() if needed)])


def _start(experiment: Experiment) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "vefl_sim.simulation.rehearsal"],  # -P: no modules of the current directory
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (_HERE, os.environ.get("PYTHONPATH"))))},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin
    with suppress(OSError), process.stdin:  # it may have ended already
        process.stdin.write(as_toml(experiment).encode())
    return process
