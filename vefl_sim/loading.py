"""From a TOML file and --set options to an Experiment, or to one clear sentence per problem."""

import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import BaseModel, ValidationError

from vefl_sim.errors import ExperimentError
from vefl_sim.experiment import Experiment, contradictions, ignored_keys
from vefl_sim.seeds import check_seeds, misplaced_seeds, rival_seeds

_RIVALS = {
    "run.rounds": "duration_s",
    "run.duration_s": "rounds",
    "traffic.mean_in_coverage": "arrivals_per_s",
    "traffic.arrivals_per_s": "mean_in_coverage",
}
"""Keys of which a table has one or the other."""
_PATHS = (("mobility", "file"), ("data", "dir"))
_ALONE = "{what} is for files with [[compare]], and {path} has none: {keep} for one experiment."
_MAP = re.compile(r"\.(osm|osm\.xml|net\.xml|sumocfg)(\.gz)?$")
_BARE_WORD = re.compile(r"([A-Za-z_~]|\.{0,2}/)[\w.:/~-]*")  # a name, a part, or a path


def load(path: str | Path, settings: Sequence[str] = ()) -> Experiment:
    """Read an experiment; `settings` are `table.key=value` strings that override it."""
    if isinstance(settings, str):
        settings = [settings]
    tables = _read_experiment(Path(path))
    if "compare" in tables:
        raise ExperimentError(f"{path} compares several experiments: load them with vefl_sim.load_variants.")
    if "seeds" in tables:
        raise ExperimentError(_ALONE.format(what="seeds", path=path, keep="write run.seed"))
    problems = [problem for setting in settings if (problem := _override(tables, setting))] + [*_rivals(settings)]
    if problems:
        raise ExperimentError(problems)
    return from_tables(tables)


@dataclass(frozen=True)
class Variant:
    """One of several versions of an experiment that are compared, with one seed."""

    comparison: str  # the name of the whole
    label: str
    experiment: Experiment

    @property
    def seed(self) -> int:
        """Which traffic, channels, data and first model it shares with the others."""
        return self.experiment.run.seed


def load_variants(path: str | Path, settings: Sequence[str] = (), seeds: Sequence[int] | None = None) -> list[Variant]:
    """The variants under [[compare]], each with a label and the tables in which it differs; none in most files.

    All of them once per seed if the file has `seeds` at its top, or `seeds` are given, which override it and run.seed.
    """
    if isinstance(settings, str):
        settings = [settings]
    tables = _read_experiment(Path(path))
    given = tables.pop("compare", [])
    _check_variants(given)
    _check_settings(given, settings)
    chosen = _seeds(path, tables, given, seeds)
    problems = [problem for setting in settings if (problem := _override(tables, setting))] + [*_rivals(settings)]
    if chosen and any(setting.partition("=")[0].strip() == "run.seed" for setting in settings):
        problems.append("--set run.seed and seeds exclude each other: keep the seeds, and choose them with --seeds.")
    if problems:
        raise ExperimentError(problems)
    variants = [_variant(tables, dict(variant)) for variant in given]
    return [_seeded(variant, seed) for seed in chosen for variant in variants] if chosen else variants


def _seeds(
    path: str | Path, tables: dict[str, Any], given: Sequence[Mapping[str, Any]], seeds: Sequence[int] | None
) -> list[int] | None:
    """The seeds that were given, else those of the file, else none; they leave `tables`."""
    if seeds is not None and not given:
        raise ExperimentError(_ALONE.format(what="--seeds", path=path, keep="use --set run.seed=…"))
    if "seeds" in tables and not given:
        raise ExperimentError(_ALONE.format(what="seeds", path=path, keep="write run.seed"))
    written = check_seeds(tables.pop("seeds")) if "seeds" in tables else None
    problems = [*misplaced_seeds(tables, given)] if given else []
    if written is not None:
        problems += rival_seeds(tables, given, "seeds")
    elif seeds is not None:
        problems += rival_seeds({}, given, "--seeds")
    if problems:
        raise ExperimentError(problems)
    return written if seeds is None else check_seeds(seeds)


def _seeded(variant: Variant, seed: int) -> Variant:
    run = variant.experiment.run.model_copy(update={"seed": seed})
    return replace(variant, experiment=variant.experiment.model_copy(update={"run": run}))


def _check_variants(given: Any) -> None:
    if not isinstance(given, list) or not all(isinstance(variant, dict) for variant in given):
        raise ExperimentError("compare must be written as tables: [[compare]], each with a label.")
    labels = [variant.get("label") for variant in given]
    if not all(isinstance(label, str) and label for label in labels):
        raise ExperimentError('Each [[compare]] needs a label, for example label = "PDPC".')
    for label in labels:
        if labels.count(label) > 1:
            raise ExperimentError(f"Two [[compare]] have the label {label!r}: each needs one of its own.")


def _check_settings(given: Sequence[Mapping[str, Any]], settings: Sequence[str]) -> None:
    """A --set that every variant overrides would do nothing."""
    for setting in settings:
        key = setting.partition("=")[0].strip()
        table, _, name = key.partition(".")
        if given and all(name in variant.get(table, {}) for variant in given):
            raise ExperimentError(f"--set {key} has no effect: every [[compare]] in the file says it itself.")


def _variant(tables: Mapping[str, Any], variant: dict[str, Any]) -> Variant:
    label = variant.pop("label")
    merged = {name: dict(table) if isinstance(table, dict) else table for name, table in tables.items()}
    for name, table in variant.items():
        base = merged.setdefault(name, {})
        if not isinstance(table, dict) or not isinstance(base, dict):
            raise ExperimentError(f"compare, {label!r}: {name} must be a table, for example {name} = {{ … }}.")
        base.update(table)
    run = merged.get("run")
    name = str(run.get("name", "")) if isinstance(run, dict) else ""
    if isinstance(run, dict) and name:
        run["name"] = f"{name}-{re.sub(r'[^a-z0-9]+', '-', label.lower()).strip('-')}"
    try:
        experiment = _validated(merged)
    except ExperimentError as error:
        raise ExperimentError([f"compare, {label!r}: {problem}" for problem in error.problems]) from None
    own = {f"{table}.{key}" for table, keys in variant.items() for key in keys}  # what all share may suit only some
    problems = [*contradictions(experiment), *(told for key, told in ignored_keys(experiment) if key in own)]
    if problems:
        raise ExperimentError([f"compare, {label!r}: {problem}" for problem in problems])
    return Variant(name, label, experiment)


def from_tables(tables: Mapping[str, Any]) -> Experiment:
    """An experiment from nested dictionaries, as tomllib gives them."""
    experiment = _validated(tables)
    problems = [*contradictions(experiment), *(sentence for _, sentence in ignored_keys(experiment))]
    if problems:
        raise ExperimentError(problems)
    return experiment


def load_resolved(path: Path) -> Experiment:
    """The experiment of a run: it has every key, also those that it does not use."""
    return _validated(_read_toml(path))


def _validated(tables: Mapping[str, Any]) -> Experiment:
    try:
        return Experiment.model_validate(tables)
    except ValidationError as error:
        raise ExperimentError(_sentences(error.errors())) from None


def with_settings(experiment: Experiment, *settings: str) -> Experiment:
    """A copy with some `table.key=value` changed; the way to vary one parameter in a script."""
    tables = experiment.model_dump(exclude_none=True, exclude_defaults=True)
    problems = [problem for setting in settings if (problem := _override(tables, setting))] + [*_rivals(settings)]
    if problems:
        raise ExperimentError(problems)
    return from_tables(tables)


def to_toml(experiment: Experiment) -> str:
    """All keys with their values, defaults included."""
    return tomli_w.dumps(experiment.resolved().model_dump(exclude_none=True))


def _read_experiment(path: Path) -> dict[str, Any]:
    """The tables of a file. Paths in it start from its folder, so that both can be moved, or else from where we are."""
    tables = _read_toml(path)
    variants = tables.get("compare", [])
    for part in (tables, *(variants if isinstance(variants, list) else ())):
        for table, key in _PATHS:
            keys = part.get(table) if isinstance(part, dict) else None
            if isinstance(keys, dict) and isinstance(name := keys.get(key), str) and name:
                keys[key] = _beside(path, name)
    return tables


def _beside(path: Path, name: str) -> str:
    there = path.parent / name
    try:
        return str(there) if there.exists() else name
    except (OSError, ValueError):  # no name of a file at all; whoever opens it will tell
        return name


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ExperimentError(f"{path}: there is no such file.") from None
    except IsADirectoryError:
        raise ExperimentError(f"{path} is a directory: name the experiment's TOML file.") from None
    except tomllib.TOMLDecodeError as error:
        if _MAP.search(path.name):
            raise ExperimentError(
                f"{path} is a map: name it as mobility.file of an experiment, as experiments/own_map.toml does, or let "
                f"python -m vefl_sim map import make one (an .osm or .net.xml)."
            ) from None
        raise ExperimentError(f"{path} is not valid TOML: {error}.") from None
    except UnicodeDecodeError:
        raise ExperimentError(f"{path} is not a text file: an experiment is TOML in UTF-8.") from None
    except RecursionError:
        raise ExperimentError(f"{path} is nested too deeply to be an experiment.") from None
    except OSError as error:
        raise ExperimentError(f"{path} cannot be read: {error.strerror}.") from None


def _rivals(settings: Sequence[str]) -> Iterable[str]:
    """Pairs of --set options that exclude each other."""
    keys = [setting.partition("=")[0].strip() for setting in settings]
    for key in keys:
        rival = f"{key.partition('.')[0]}.{_RIVALS.get(key)}"
        if key in _RIVALS and rival in keys and key < rival:
            yield f"--set {key} and --set {rival} exclude each other: keep one of them."


def _override(tables: dict[str, Any], setting: str) -> str | None:
    """Apply one --set option in place; return what is wrong with it, if anything."""
    key, equals, text = setting.partition("=")
    names = key.strip().split(".")
    if not equals or len(names) != 2 or not all(names):
        return f"--set {setting}: write it as table.key=value, for example --set radio.prbs=12."
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        if not _BARE_WORD.fullmatch(text.strip()):
            return f"--set {setting}: the value is not valid TOML; put text in double quotes."
        value = text.strip()  # a shell eats the quotes that TOML wants around a word
    table = tables.setdefault(names[0], {})
    if not isinstance(table, dict):
        return f"--set {setting}: {names[0]} is not a table in the file."
    if rival := _RIVALS.get(key.strip()):
        table.pop(rival, None)  # the later word wins
    table[names[1]] = value
    return None


def _sentences(errors: Iterable[Any]) -> list[str]:
    """One sentence per key; a key that fails two alternatives of a union is one problem."""
    sentences: dict[tuple[Any, ...], str] = {}
    for error in errors:
        where = tuple(error["loc"][:2])
        sentences[where] = _merged(sentences[where], error) if where in sentences else _sentence(error)
    return list(sentences.values())


def _sentence(error: Any) -> str:
    where, kind = error["loc"], error["type"]
    if kind == "missing" and len(where) < 3:
        return _missing(where)
    if kind == "extra_forbidden":
        return _unknown(where)
    if len(where) == 1:
        return f"[{where[0]}] must be a table, not {_shown(error['input'])}."
    return f"{where[0]}.{where[1]} = {_shown(error['input'])}: {_complaint(error)}."


def _merged(first: str, error: Any) -> str:
    if error["type"] == "string_pattern_mismatch":
        return f'{first[:-1]}, or a part of your own as "module:name".'
    return first


def _missing(where: tuple[Any, ...]) -> str:
    if where == ("run",):
        return 'The table [run] is missing: add it with a name, for example name = "first".'
    return f"{'.'.join(map(str, where))} is missing: add it."


def _unknown(where: tuple[Any, ...]) -> str:
    tables = Experiment.model_fields
    if len(where) == 1:
        return f"[{where[0]}] is not a known table; the nearest is [{_nearest(where[0], tables)}]."
    table, key = where[0], where[1]
    for other, field in tables.items():
        if key in _keys(field.annotation):
            return f"{table}.{key} is not a known key of [{table}]; did you mean {other}.{key}?"
    nearest = _nearest(key, _keys(tables[table].annotation))
    return f"{table}.{key} is not a known key of [{table}]; the nearest is {table}.{nearest}."


def _keys(table: Any) -> list[str]:
    return list(table.model_fields) if issubclass(table, BaseModel) else []


def _nearest(word: str, known: Iterable[str]) -> str:
    return difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.0)[0]


_COMPLAINTS = {
    "finite_number": "it must be a finite number",
    "int_type": "it must be a whole number",
    "int_from_float": "it must be a whole number",
    "float_type": "it must be a number",
    "bool_type": "it must be true or false",
    "string_type": "it must be text in quotes",
    "tuple_type": "it must be {pair}",
    "greater_than": "it must be greater than {gt}",
    "greater_than_equal": "it must be at least {ge}",
    "less_than": "it must be less than {lt}",
    "less_than_equal": "it must be at most {le}",
    "literal_error": "it must be {expected}",
    "too_long": "it must be {pair} of two numbers",
    "missing": "it must be {pair} of two numbers",
    "string_too_long": "it must have at most {max_length} characters",
    "value_error": "{error}",
}
_NAME_COMPLAINT = "it may hold letters, digits, dots, dashes and underscores, and starts with a letter or digit"


def _complaint(error: Any) -> str:
    if error["type"] == "string_pattern_mismatch":
        return 'it must be a part as "module:name"' if ":" in error["ctx"]["pattern"] else _NAME_COMPLAINT
    template = _COMPLAINTS.get(error["type"])
    pair = "a point [x, y]" if error["loc"][1] in ("origin_m", "origin_deg") else "a range [low, high]"
    return template.format(**error.get("ctx", {}), pair=pair) if template else str(error["msg"]).lower()


def _shown(value: Any) -> str:
    """A value as the user may have typed it, cut short."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:
        text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
