"""Attack the program for some minutes, and print what was tried and what broke.

    python -m tests.fuzz --minutes 10 --seed 1
    python -m tests.fuzz --only experiments --seed 4711 --attempts 1     # repeat one attempt

The files of an attempt that broke something are kept in fuzz; once the mistake is mended, they go into
tests/fuzz/corpus, which `make slow` attacks with.
"""

import argparse
import faulthandler
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from random import Random

from tests.fuzz.attack import Attack
from tests.fuzz.attacks import ATTACKS

FOLDER = Path("fuzz")
MOST_BYTES = 2**30
"""Memory that one attempt may add to what the process had before it."""
MOST_OF_ALL = 5 * 2**30
"""Memory of the whole process, beyond which Python raises MemoryError, before the machine has none left."""
IMPORTS_S = 300.0
"""What the first attempt may take longer: it imports and compiles."""


def main() -> int:
    """Run the attacks that the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="for all attacks together (10)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first attempt (the time of day)")
    parser.add_argument("--attempts", type=int, default=10**9, help="seeds at most, for each attack")
    parser.add_argument("--only", nargs="+", choices=sorted(ATTACKS), default=sorted(ATTACKS), help="these attacks")
    options = parser.parse_args()
    if len(options.only) == 1:
        return run(ATTACKS[options.only[0]], options.seed, options.attempts, 60 * options.minutes)
    print(f"seed {options.seed}, {60 * options.minutes / len(options.only):.0f} s for each attack", flush=True)
    usual = ("--seed", options.seed, "--attempts", options.attempts, "--minutes", options.minutes / len(options.only))
    commands = [[sys.executable, "-m", "tests.fuzz", *map(str, usual), "--only", name] for name in options.only]
    return max([subprocess.run(command).returncode != 0 for command in commands])  # a crash ends one attack only


def run(attack: Attack, first_seed: int, attempts: int, seconds: float) -> int:
    """Attempt one seed after another until the time is over; the files of a failure, a crash or a hang are kept."""
    began, count, failures, memory_gib = time.monotonic(), 0, 0, 0.0
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_OF_ALL, MOST_OF_ALL))
    faulthandler.enable()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
        tempfile.tempdir = place
        for seed in range(first_seed, first_seed + attempts):
            if time.monotonic() > began + seconds:
                break
            folder = FOLDER / f"{attack.name}-{seed}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            faulthandler.dump_traceback_later(attack.limit_s + (0 if count else IMPORTS_S), exit=True)
            before, found = _forget_peak(), ""
            try:
                attack.make(Random(f"{attack.name} {seed}"), folder)
                count += attack.check(folder) or 1
            except Exception:
                found = traceback.format_exc(limit=-6)
            grown_gib = max(_peak() - before, 0) / 2**30
            memory_gib = max(memory_gib, grown_gib)
            if found or grown_gib * 2**30 > MOST_BYTES:
                failures += 1
                print(f"{attack.name}, seed {seed}: {found or f'took {grown_gib:.1f} GiB'}", flush=True)
            else:
                shutil.rmtree(folder)
    faulthandler.cancel_dump_traceback_later()
    minutes = (time.monotonic() - began) / 60
    tried = f"{count:,} attempts (goal {attack.goal:,}), {failures} failures"
    print(f"{attack.name:16} {tried}, {minutes:.1f} minutes, at most {memory_gib:.2f} GiB", flush=True)
    return int(failures > 0)


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


if __name__ == "__main__":
    sys.exit(main())
