"""What a [sweep] varies, or one clear sentence per problem."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.complaints import unknown
from vefl_sim.experiment.experiment import Experiment

_NOT_SWEPT = {
    "run.seed": "write the repeats as sweep.seeds = [1, 2, 3]",
    "run.name": "points are named by what is in them",
    "run.checkpoint_every": "it changes no result",
    "learning.threads": "each point has one thread",
}


@dataclass(frozen=True)
class Axis:
    """Keys that change together: one key by itself, or several in step."""

    keys: tuple[str, ...]
    steps: tuple[tuple[Any, ...], ...]  # each with one value per key

    def values(self) -> Iterator[dict[str, Any]]:
        """Step by step."""
        return (dict(zip(self.keys, step, strict=True)) for step in self.steps)


def axes(sweep: Mapping[str, Any]) -> list[Axis]:
    """Each key under [sweep] is an axis of its own, each [[sweep.zip]] one of several keys."""
    zipped = sweep.get("zip", [])
    if not isinstance(zipped, list) or not all(isinstance(table, dict) for table in zipped):
        raise ExperimentError("sweep.zip must be written as tables: [[sweep.zip]], each with keys that go together.")
    alone = {name: table for name, table in sweep.items() if name != "zip"}
    problems: list[str] = []
    lists = [_lists(alone, problems), *(_lists(table, problems) for table in zipped)]
    if problems := [*problems, *_repeated(lists)]:
        raise ExperimentError(problems)
    found = [Axis((key,), tuple((value,) for value in values)) for key, values in lists[0].items()]
    return found + [_zipped(together) for together in lists[1:]]


def _lists(tables: Mapping[str, Any], problems: list[str]) -> dict[str, list[Any]]:
    """The lists by their keys, as table.key."""
    found: dict[str, list[Any]] = {}
    for name, table in tables.items():
        if not isinstance(table, dict):
            problems.append(
                f"sweep.{name} is neither seeds nor zip: a key needs its table, for example sweep.radio.prbs = [6, 12]."
            )
            continue
        for key, values in table.items():
            if problem := _problem(name, key, values):
                problems.append(f"sweep.{name}.{key}: {problem}")
                continue
            found[f"{name}.{key}"] = values
    return found


def _problem(name: str, key: str, values: Any) -> str | None:
    if name not in Experiment.model_fields:
        return unknown((name,))
    if key not in _fields(name):
        return unknown((name, key))
    if f"{name}.{key}" in _NOT_SWEPT:
        return f"it cannot be swept: {_NOT_SWEPT[f'{name}.{key}']}."
    if not isinstance(values, list):
        return f"it must be a list of values, for example [{values}]."
    if not values:
        return "the list is empty; name at least one value, or remove the key."
    return None


def _fields(table: str) -> set[str]:
    return set(getattr(Experiment.model_fields[table].annotation, "model_fields", ()))


def _repeated(lists: list[dict[str, list[Any]]]) -> Iterator[str]:
    keys = [key for together in lists for key in together]
    for key in dict.fromkeys(keys):
        if keys.count(key) > 1:
            yield f"sweep: {key} is there twice: keep it by itself, or in one [[sweep.zip]]."
    for key, values in lists[0].items():
        twice = [value for place, value in enumerate(values) if value in values[:place]]
        if twice:
            yield f"sweep.{key}: {twice[0]} is there twice; each value counts once."


def _zipped(together: dict[str, list[Any]]) -> Axis:
    lengths = {key: len(values) for key, values in together.items()}
    if len(set(lengths.values())) > 1:
        message = ", ".join(f"{key} has {length}" for key, length in lengths.items())
        raise ExperimentError(f"sweep.zip: the lists must be of equal length, and {message} values.")
    if not lengths:
        raise ExperimentError("sweep.zip: a table is empty; name the keys that go together, or remove it.")
    steps = tuple(zip(*together.values(), strict=True))
    if twice := [step for place, step in enumerate(steps) if step in steps[:place]]:
        message = ", ".join(f"{key} = {value}" for key, value in zip(together, twice[0], strict=True))
        raise ExperimentError(f"sweep.zip: {message} is there twice; each step counts once.")
    return Axis(tuple(together), steps)
