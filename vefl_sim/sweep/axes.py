"""The keys that a [sweep] varies, with their values; each mistake is reported in one sentence."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from vefl_sim.core.errors import MAX_PROBLEMS, ExperimentError
from vefl_sim.experiment.complaints import is_key, shown, unknown
from vefl_sim.experiment.experiment import Experiment

_NOT_SWEPT = {
    "run.seed": "write the repeats as sweep.seeds = [1, 2, 3]",
    "run.name": "points are named by their configuration",
    "run.checkpoint_every": "it changes no result",
    "run.watch": "it changes no result",
    "learning.keep_models": "it changes no result",
    "learning.threads": "each point runs on one thread",
}


@dataclass(frozen=True)
class Axis:
    """One key of its own, or the keys of one [[sweep.zip]], whose values change together."""

    keys: tuple[str, ...]
    steps: tuple[tuple[Any, ...], ...]  # each step has one value per key

    def values(self) -> Iterator[dict[str, Any]]:
        """The values of the keys at each step, by `table.key`."""
        return (dict(zip(self.keys, step, strict=True)) for step in self.steps)


def axes(sweep: Mapping[str, Any]) -> list[Axis]:
    """The axes of a [sweep]: one for each key, and one for each [[sweep.zip]] with all its keys."""
    zipped = sweep.get("zip", [])
    if not isinstance(zipped, list) or not all(isinstance(table, dict) for table in zipped):
        raise ExperimentError("sweep.zip must be written as tables: [[sweep.zip]], each with keys that change in step.")
    single = _lists({name: table for name, table in sweep.items() if name != "zip"})
    tables = [*({key: values} for key, values in single.items()), *map(_lists, zipped)]
    for key in first_repeated([key for table in tables for key in table]):
        raise ExperimentError(f"sweep: {key} appears twice: keep it either on its own or in one [[sweep.zip]].")
    return [*map(_axis, tables)]


def _lists(tables: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The lists of values by `table.key`."""
    if wrong := [name for name, table in tables.items() if not isinstance(table, dict)]:
        raise ExperimentError(
            f"sweep.{wrong[0]} is neither seeds nor zip: a key needs its table, for example sweep.radio.prbs = [6, 12]."
        )
    lists = {(name, key): values for name, table in tables.items() for key, values in table.items()}
    complaints = ((".".join(key), _problem(*key, values)) for key, values in lists.items())
    wrong_keys = (f"sweep.{key}: {problem}" for key, problem in complaints if problem)
    if problems := [*islice(wrong_keys, MAX_PROBLEMS)]:  # nobody reads more, and searching for the nearest name is slow
        raise ExperimentError(problems)
    return {".".join(key): values for key, values in lists.items()}


def _problem(name: str, key: str, values: Any) -> str | None:
    if name not in Experiment.model_fields:
        return unknown((name,))
    if not is_key(name, key):
        return unknown((name, key))
    if f"{name}.{key}" in _NOT_SWEPT:
        return f"it cannot be swept: {_NOT_SWEPT[f'{name}.{key}']}."
    if not isinstance(values, list):
        return f"it must be a list of values, for example [{shown(values)}]."
    if not values:
        return "the list is empty; name at least one value, or remove the key."
    return None


def _axis(lists: dict[str, list[Any]]) -> Axis:
    lengths = {key: len(values) for key, values in lists.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{key} has {length}" for key, length in lengths.items())
        raise ExperimentError(f"sweep.zip: the lists must have the same length, but {listed} values.")
    if not lengths:
        raise ExperimentError("sweep.zip: a table is empty: add the keys that change together, or remove it.")
    steps = tuple(zip(*lists.values(), strict=True))
    for step in first_repeated(steps):
        values = ", ".join(f"{key} = {shown(value)}" for key, value in zip(lists, step, strict=True))
        raise ExperimentError(f"sweep: {values} appears twice: remove one of them.")
    return Axis(tuple(lists), steps)


def first_repeated(values: Sequence[Any]) -> list[Any]:
    """The first value that is in a list twice, as a list of one; [] if there is none."""
    seen = set()
    for value in values:
        if (text := repr(value)) in seen:
            return [value]
        seen.add(text)
    return []
