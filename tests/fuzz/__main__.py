"""Attack the program for some minutes, and print what was tried and what broke.

    python -m tests.fuzz --minutes 10 --seed 1
    python -m tests.fuzz --only experiments --seed 4711 --attempts 1     # repeat one attempt
    python -m tests.fuzz --table                                         # all attempts so far, from fuzz/log.jsonl

The files of an attempt that broke something are kept in fuzz/failures; once the mistake is mended, they go into
tests/fuzz/corpus, which `make slow` attacks with.
"""

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.fuzz.attack import ATTACKS, FOLDER, attack

JOBS = 2
"""Attacks at a time."""


def main() -> None:
    """Run the attacks that the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="for all attacks together (10)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first attempt (the time of day)")
    parser.add_argument("--attempts", type=int, default=10**9, help="seeds at most, for each attack")
    parser.add_argument("--only", nargs="+", choices=sorted(ATTACKS), default=sorted(ATTACKS), help="these attacks")
    parser.add_argument("--table", action="store_true", help="print all attempts so far, and attack nothing")
    options = parser.parse_args()
    log, tallies = FOLDER / "log.jsonl", list[dict[str, Any]]()
    if options.table:
        tallies = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    else:
        FOLDER.mkdir(exist_ok=True)
        seconds = 60 * options.minutes * min(JOBS, len(options.only)) / len(options.only)
        print(f"seed {options.seed}, {seconds:.0f} s for each attack", flush=True)
        with ThreadPoolExecutor(JOBS) as pool:
            for tally in pool.map(lambda name: attack(name, options.seed, options.attempts, seconds), options.only):
                tallies.append(tally)
                with log.open("a") as file:
                    file.write(json.dumps(tally) + "\n")
                print(*tally["failures"], sep="\n", end="\n" * bool(tally["failures"]), flush=True)
    print(f"{'attack':16}{'attempts':>10}{'goal':>10}{'failures':>10}{'minutes':>10}{'most GiB':>10}")
    for name in sorted({tally["name"] for tally in tallies}):
        rows = [tally for tally in tallies if tally["name"] == name]
        attempts, minutes = sum(row["attempts"] for row in rows), sum(row["seconds"] for row in rows) / 60
        failures, memory = sum(len(row["failures"]) for row in rows), max(row["memory_gib"] for row in rows)
        print(f"{name:16}{attempts:10,}{ATTACKS[name].goal:10,}{failures:10}{minutes:10.1f}{memory:10.2f}")
    raise SystemExit(not options.table and any(tally["failures"] for tally in tallies))


if __name__ == "__main__":
    main()
