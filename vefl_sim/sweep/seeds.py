"""The seeds of a comparison, as a file or the command line gives them, or one clear sentence."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vefl_sim.core.errors import ExperimentError

_MOST = 1000  # a mistyped range is likelier than more
_PIECE = re.compile(r"\s*(\d{1,19})\s*(?:-\s*(\d{1,19})\s*)?", re.ASCII)


def parse_seeds(text: str) -> list[int]:
    """What --seeds says: numbers and ranges with commas between them, for example 1,2,3 or 1-5."""
    return check_seeds([seed for piece in text.split(",") for seed in _piece(piece, text)], f"--seeds {text}")


def _piece(piece: str, text: str) -> range:
    match = _PIECE.fullmatch(piece)
    if not match:
        raise ExperimentError(f"--seeds {text}: write numbers or a range, for example --seeds 1,2,3 or --seeds 1-5.")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise ExperimentError(f"--seeds {text}: the range {first}-{last} is empty, write it as {last}-{first}.")
    return range(first, min(last, first + _MOST) + 1)  # one too many is enough to be refused


def check_seeds(seeds: Any, where: str = "seeds") -> list[int]:
    """Whole numbers, each once, at least one."""
    if not isinstance(seeds, Sequence) or isinstance(seeds, str) or not all(type(seed) is int for seed in seeds):
        raise ExperimentError(f"{where}: it must be a list of whole numbers, for example seeds = [1, 2, 3].")
    if not seeds:
        raise ExperimentError(f"{where}: the list is empty; name at least one, or leave it out.")
    if len(seeds) > _MOST:
        raise ExperimentError(f"{where}: that is more than {_MOST} seeds.")
    for seed in seeds:
        if not 0 <= seed < 2**63:
            raise ExperimentError(f"{where}: a seed must be at least 0 and less than 2^63, and {seed} is not.")
        if list(seeds).count(seed) > 1:
            raise ExperimentError(f"{where}: {seed} is there twice; each seed counts once.")
    return list(seeds)


def rival_seeds(tables: Mapping[str, Any], variants: Sequence[Mapping[str, Any]], with_what: str) -> Iterator[str]:
    """Where else a comparison with seeds names one; `with_what` is what the user calls these seeds."""
    if _has(tables.get("run"), "seed"):
        yield f"run.seed and {with_what} exclude each other: keep {with_what}, or run.seed to run each variant once."
    for variant in variants:
        if _has(variant.get("run"), "seed"):
            yield (
                f"compare, {variant['label']!r}: run.seed and {with_what} exclude each other: remove run.seed, "
                "so that all variants share the seeds."
            )


def misplaced_seeds(tables: Mapping[str, Any], variants: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """In TOML what stands below a [table] belongs to it."""
    places = [f"[{name}]" for name, table in tables.items() if _has(table, "seeds")]
    places += [f"the [[compare]] of {variant['label']!r}" for variant in variants if "seeds" in variant]
    for place in places:
        yield f"seeds stands in {place}: move it to the top of the file, above the first table."


def _has(table: Any, key: str) -> bool:
    return isinstance(table, dict) and key in table
