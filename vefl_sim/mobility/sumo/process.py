"""A SUMO that runs: within our process (libsumo) or as one of its own (traci). Both speak the same API."""

import io
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import IO, Any, Literal

from vefl_sim.core.errors import ExperimentError, RunFailed
from vefl_sim.mobility.sumo.programs import complaint, environment, program

ClientKind = Literal["libsumo", "traci"]
_TRIES, _WAIT_S = 1200, 0.05  # a minute, in which even a large net is loaded
_QUIET = ("--no-step-log", "--no-warnings", "--duration-log.disable")


class CannotStart(ExperimentError):
    """SUMO refuses what it was started with."""


@contextmanager
def running(kind: ClientKind, arguments: Sequence[str]) -> Iterator[Any]:
    """The API of a SUMO that is stopped when the block ends, however it ends."""
    start = _within if kind == "libsumo" else _apart
    with start([program("sumo"), *arguments, *_QUIET]) as api:
        yield api


def require_accepted(arguments: Sequence[str]) -> None:
    """See whether SUMO takes this. It does so in a process of its own, because libsumo would not get over an error."""
    with running("traci", arguments):
        pass


def load_libsumo() -> Any:
    """The module. It warns on stdout of a pyarrow with another libarrow, which is never called from there."""
    import traci  # noqa: F401  first: with the variable it would turn into libsumo

    before = os.environ.get("LIBSUMO_AS_TRACI")
    os.environ["LIBSUMO_AS_TRACI"] = "quiet"
    try:
        import libsumo
    finally:
        del os.environ["LIBSUMO_AS_TRACI"]
        if before is not None:
            os.environ["LIBSUMO_AS_TRACI"] = before
    return libsumo


@contextmanager
def _within(command: list[str]) -> Iterator[Any]:
    libsumo = load_libsumo()
    if libsumo.simulation.isLoaded():
        raise RunFailed('libsumo runs once in a process, and is at work already: set sumo.client = "traci".')
    try:
        _start(libsumo, command)
        yield libsumo
    finally:
        with suppress(Exception):  # after an error there may be nothing left to close
            libsumo.close()


def _start(libsumo: Any, command: list[str]) -> None:
    try:
        libsumo.start(command)
    except Exception as error:
        raise CannotStart(complaint(str(error))) from None


@contextmanager
def _apart(command: list[str]) -> Iterator[Any]:
    with tempfile.TemporaryFile() as log:
        process, connection = _connected(command, log)
        try:
            try:
                yield connection
            finally:
                with suppress(Exception):
                    connection.close(wait=False)
                _end(process)
        except RunFailed as error:
            if "Error" not in (text := _text(log)):
                raise
            raise RunFailed(f"{str(error).rstrip('.')}: {complaint(text)}") from error  # traci knows no reason


def _connected(command: list[str], log: IO[bytes]) -> tuple[subprocess.Popen[bytes], Any]:
    """Start it and connect; its port may be taken by somebody else in between, so more than once."""
    import traci
    from sumolib.miscutils import getFreeSocketPort

    for attempt in range(3):
        port = getFreeSocketPort()
        process = subprocess.Popen(
            [*command, "--remote-port", str(port)],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for us, and we close it
        )
        try:
            with redirect_stdout(io.StringIO()):  # it tells of every retry
                connection = traci.connect(port, _TRIES, proc=process, waitBetweenRetries=_WAIT_S)
                connection.getVersion()  # it accepts connections before it has read its files
                return process, connection
        except Exception:
            _end(process)
            if process.returncode < 0:  # it did not refuse anything
                raise RunFailed(f"SUMO was killed at its start, by signal {-process.returncode}.") from None
            if attempt == 2 or "bind" not in _text(log):
                raise CannotStart(complaint(_text(log))) from None
        except BaseException:
            process.kill()
            process.wait()
            raise
    raise AssertionError("the loop returns or raises")


def _end(process: subprocess.Popen[bytes]) -> None:
    """It ends by itself when the connection is closed; if not, make it."""
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    except BaseException:
        process.kill()
        process.wait()
        raise


def _text(log: IO[bytes]) -> str:
    log.seek(0)
    return log.read().decode(errors="replace")
