"""Seeds of a comparison or a sweep, from a file or from --seeds; each mistake is reported in one sentence."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.complaints import shortened, shown
from vefl_sim.sweep.axes import first_repeated

_MAX_SEEDS = 1000  # more are probably a mistyped range
_PIECE = re.compile(r"\s*(\d{1,19})\s*(?:-\s*(\d{1,19})\s*)?", re.ASCII)


def parse_seeds(text: str) -> list[int]:
    """The seeds in the text of --seeds: numbers and ranges separated by commas, for example 1,2,3 or 1-5."""
    return check_seeds(
        [seed for piece in text.split(",") for seed in _piece(piece, shortened(text))], f"--seeds {shortened(text)}"
    )


def _piece(piece: str, text: str) -> range:
    match = _PIECE.fullmatch(piece)
    if not match:
        raise ExperimentError(f"--seeds {text}: write numbers or a range, for example --seeds 1,2,3 or --seeds 1-5.")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise ExperimentError(f"--seeds {text}: the range {first}-{last} is empty, write it as {last}-{first}.")
    return range(first, min(last, first + _MAX_SEEDS) + 1)  # check_seeds refuses one seed too many


def check_seeds(seeds: Any, where: str = "seeds") -> list[int]:
    """Return seeds that are whole numbers, each once and at least one; `where` names them in errors."""
    if not isinstance(seeds, Sequence) or isinstance(seeds, str) or not all(type(seed) is int for seed in seeds):
        raise ExperimentError(f"{where}: it must be a list of whole numbers, for example seeds = [1, 2, 3].")
    if not seeds:
        raise ExperimentError(f"{where}: the list is empty: give at least one seed, or leave it out.")
    if len(seeds) > _MAX_SEEDS:
        raise ExperimentError(f"{where}: these are more than {_MAX_SEEDS} seeds: use fewer.")
    if wrong := [seed for seed in seeds if not 0 <= seed < 2**63]:
        raise ExperimentError(f"{where}: a seed must be at least 0 and less than 2^63, and {shown(wrong[0])} is not.")
    for seed in first_repeated(seeds):
        raise ExperimentError(f"{where}: {seed} appears twice: remove one of them.")
    return list(seeds)


def chosen_seeds(
    tables: dict[str, Any],
    swept: dict[str, Any],
    variants: Sequence[Mapping[str, Any]],
    *,
    given: Sequence[int] | None,
    settings: Sequence[str],
) -> list[int] | None:
    """The seeds that are given, else those of [sweep], else those at the top of the file, else None.

    Both keys are removed from the tables of the file. `settings`: the --set options, which were applied to the tables.
    """
    top, own = tables.pop("seeds", None), swept.pop("seeds", None)
    places = [f"[{name}]" for name, table in tables.items() if _has(table, "seeds")]  # in TOML, it belongs to the table
    places += [f"the [[compare]] of {variant['label']!r}" for variant in variants if "seeds" in variant]
    if places:
        raise ExperimentError(f"seeds is in {places[0]}: move it to the top of the file, above the first table.")
    if top is not None and own is not None:
        raise ExperimentError("seeds and sweep.seeds both list the seeds: keep one of them.")
    listed = top if own is None else own
    seeds = None if listed is None else check_seeds(listed, "seeds" if own is None else "sweep.seeds")
    seeds = seeds if given is None else check_seeds(given)
    if seeds and any(re.match(r"\s*run\.seed\s*=\s*\S", setting) for setting in settings):
        raise ExperimentError(
            "--set run.seed and seeds exclude each other: keep the seeds, and choose them with --seeds."
        )
    if seeds and (problems := [*_conflicts(tables if given is None else {}, variants, given)]):
        raise ExperimentError(problems)
    return seeds


def _conflicts(
    tables: Mapping[str, Any], variants: Sequence[Mapping[str, Any]], given: Sequence[int] | None
) -> Iterator[str]:
    """A problem for each run.seed that contradicts the list of seeds."""
    option = "seeds" if given is None else "--seeds"
    if _has(tables.get("run"), "seed"):
        yield f"run.seed and {option} exclude each other: keep {option}, or run.seed to run each variant once."
    for variant in variants:
        if _has(variant.get("run"), "seed"):
            yield (
                f"compare, {variant['label']!r}: run.seed and {option} exclude each other: remove run.seed, "
                "so that all variants share the seeds."
            )


def _has(table: Any, key: str) -> bool:
    return isinstance(table, dict) and key in table
