"""The attacks by name, and a process that makes their attempts, watched from outside.

An attempt is a folder of small files that are made from one random seed.
"""

import multiprocessing
import resource
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any, Protocol

from tests.fuzz import agents, data_files, experiments, kills, rat_problems, run_directories, vefl_problems

FOLDER = Path("fuzz")
MOST_BYTES = 2**30
"""Memory that one attempt may add to what the process had before it."""
_MOST_OF_ALL = 2**32 + MOST_BYTES
"""Memory of the whole process, beyond which Python raises MemoryError, before the machine has none left."""
_PREPARING_S = 300.0
"""Imports and compiles before the first attempt."""

Found = tuple[str, float, int]
"""What an attempt broke, or an empty text; the memory it took in GiB; and how many attempts it was."""


class Attack(Protocol):
    """One way of attacking the program."""

    name: str  # its row of the table and its folder in the corpus
    goal: int  # attempts before a release (docs/resume.md)
    limit_s: float  # an attempt that takes longer is a hang

    def make(self, random: Random, folder: Path) -> None:
        """Write the files of one attempt into an empty folder."""

    def check(self, folder: Path) -> int | None:
        """Let the program work on these files; any exception, such as Broken, is a failure.

        Returns how many attempts they are, if not one.
        """


_ALL: tuple[Attack, ...] = (
    *(*experiments.ATTACKS, data_files.ATTACK, run_directories.ATTACK),
    *(rat_problems.ATTACK, vefl_problems.ATTACK, kills.ATTACK, agents.ATTACK),
)
ATTACKS = {attack.name: attack for attack in _ALL}


def attack(name: str, first_seed: int, attempts: int, seconds: float) -> dict[str, Any]:
    """Attempt one seed after another until the time is over; returns what was tried and found."""
    began, seed, count, memory, failures = time.monotonic(), first_seed, 0, 0.0, list[str]()
    while seed < first_seed + attempts and (left := began + seconds - time.monotonic()) > 0:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            for found, gib, number in watch(name, seed, first_seed + attempts, left, Path(folder)):
                memory, count = max(memory, gib), count + number
                if found:
                    failures.append(f"{name}, seed {seed}: {found}")
                    kept = FOLDER / "failures" / f"{name}-{seed}"
                    shutil.rmtree(kept, ignore_errors=True)
                    shutil.copytree(Path(folder) / str(seed), kept)
                    (kept / "FAILURE.txt").write_text(found)
                seed += 1
    tally: dict[str, Any] = {"name": name, "first_seed": first_seed, "attempts": count, "failures": failures}
    return tally | {"seconds": round(time.monotonic() - began, 1), "memory_gib": memory}


def watch(name: str, first: int, last: int, seconds: float, folder: Path) -> Iterator[Found]:
    """Yield what each attempt of one process found; ends when the process ends, or is ended because it hangs."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe(duplex=False)
    process = spawn.Process(target=work, args=(name, first, last, seconds, folder, there))
    process.start()
    there.close()
    limit_s = ATTACKS[name].limit_s
    try:
        ready = here.poll(limit_s + _PREPARING_S)
        while ready:
            yield here.recv()
            ready = here.poll(limit_s)
        yield f"hangs: nothing for {limit_s:.0f} s", 0.0, 1
    except EOFError:
        process.join()
        if process.exitcode:
            yield f"the process ended with exit code {process.exitcode}", 0.0, 1
    finally:
        process.kill()
        process.join()


def work(name: str, first: int, last: int, seconds: float, folder: Path, out: Connection) -> None:
    """The process that attacks: for each seed, send what was found."""
    end = time.monotonic() + seconds
    tempfile.tempdir = str(folder)  # removed with it, also if this process is ended
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_OF_ALL, _MOST_OF_ALL))
    for seed in range(first, last):
        if time.monotonic() > end:
            return
        attempt = folder / str(seed)
        attempt.mkdir()
        with suppress(OSError):  # forget the peak of memory
            Path("/proc/self/clear_refs").write_text("5")
        before, found, number = peak_bytes(), "", 1
        try:
            ATTACKS[name].make(Random(f"{name} {seed}"), attempt)
            number = ATTACKS[name].check(attempt) or 1
        except Exception:
            found = traceback.format_exc(limit=-6)
        grown = max(peak_bytes() - before, 0)
        if grown > MOST_BYTES and not found:
            found = f"took {grown / 2**30:.1f} GiB"
        out.send((found, grown / 2**30, number))
        if not found:
            shutil.rmtree(attempt)


def peak_bytes() -> int:
    """The most memory that this process has had since its peak was forgotten."""
    line = next(row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
