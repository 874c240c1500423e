"""A campaign: attempts of one attack after another in a process of their own, watched from outside."""

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
from typing import NamedTuple

from tests.fuzz.attacks import ATTACKS

MOST_BYTES = 2**30
"""Memory that one attempt may add to what the process had before it."""
PROGRESS_S = 30.0
_MOST_OF_ALL = 2**32 + MOST_BYTES
"""Memory of the whole process, beyond which Python raises MemoryError, before the machine has none left."""


class Tally(NamedTuple):
    """What a campaign tried and found."""

    name: str
    first_seed: int
    attempts: int
    seconds: float
    memory_gib: float
    failures: list[str]


class Campaign:
    """Attempts of one attack."""

    def __init__(self, name: str, failures: Path) -> None:
        self.attack = ATTACKS[name]
        self.kept = failures

    def run(self, first_seed: int, attempts: int, seconds: float) -> Tally:
        """Attempt one seed after another until the time is over."""
        began, seed, count, memory, failures = time.monotonic(), first_seed, 0, 0.0, list[str]()
        shown = began
        while seed < first_seed + attempts and (left := began + seconds - time.monotonic()) > 0:
            with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
                for found, gib, number in self._watch(seed, first_seed + attempts, left, Path(folder)):
                    memory, count = max(memory, gib), count + number
                    if found:
                        failures.append(f"{self.attack.name}, seed {seed}: {found}")
                        self._keep(seed, Path(folder) / str(seed), found)
                    seed += 1
                    if time.monotonic() - shown > PROGRESS_S:
                        shown = time.monotonic()
                        done = f"{count} attempts, {len(failures)} failures, up to seed {seed - 1}"
                        print(f"{shown - began:6.0f} s  {self.attack.name}: {done}", flush=True)
        return Tally(self.attack.name, first_seed, count, round(time.monotonic() - began, 1), memory, failures)

    def _watch(self, first: int, last: int, seconds: float, folder: Path) -> Iterator[tuple[str, float, int]]:
        """Yield what each attempt of one process found; ends when the process ends, or is ended because it hangs."""
        spawn = multiprocessing.get_context("spawn")
        here, there = spawn.Pipe(duplex=False)
        process = spawn.Process(target=work, args=(self.attack.name, first, last, seconds, folder, there))
        process.start()
        there.close()
        try:
            limit_s = self.attack.limit_s + 300  # imports and compiles first
            while here.poll(limit_s):
                yield here.recv()
                limit_s = self.attack.limit_s
            yield f"hangs: nothing for {limit_s:.0f} s", 0.0, 1
        except EOFError:
            process.join()
            if process.exitcode:
                yield f"the process ended with exit code {process.exitcode}", 0.0, 1
        finally:
            process.kill()
            process.join()

    def _keep(self, seed: int, folder: Path, found: str) -> None:
        kept = self.kept / f"{self.attack.name}-{seed}"
        shutil.rmtree(kept, ignore_errors=True)
        if folder.exists():
            shutil.copytree(folder, kept)
        kept.mkdir(parents=True, exist_ok=True)
        (kept / "FAILURE.txt").write_text(found)


def work(name: str, first: int, last: int, seconds: float, folder: Path, out: Connection) -> None:
    """The process of a campaign: for each seed, send what it found, the memory it took in GiB, and its attempts."""
    attack, end = ATTACKS[name], time.monotonic() + seconds
    tempfile.tempdir = str(folder)  # removed with it, also if this process is ended
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_OF_ALL, _MOST_OF_ALL))
    for seed in range(first, last):
        if time.monotonic() > end:
            return
        attempt = folder / str(seed)
        attempt.mkdir()
        before = _forget_peak()
        found, number = "", 1
        try:
            attack.make(Random(f"{name} {seed}"), attempt)
            number = attack.check(attempt) or 1
        except Exception:
            found = traceback.format_exc(limit=-6)
        grown = max(_peak() - before, 0)
        if grown > MOST_BYTES and not found:
            found = f"took {grown / 2**30:.1f} GiB"
        out.send((found, grown / 2**30, number))
        if not found:
            shutil.rmtree(attempt)


def _forget_peak() -> int:
    """The memory of this process in bytes, from which its peak is measured anew."""
    with suppress(OSError):  # then the peak is that of all attempts so far
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    try:
        line = next(row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
