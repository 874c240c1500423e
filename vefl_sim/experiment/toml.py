"""From a TOML file and --set options to an Experiment, or to one clear sentence per problem."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.complaints import complaints_about
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.rules import contradictions
from vefl_sim.experiment.unused_keys import ignored_keys

_RIVALS = {
    "run.rounds": "duration_s",
    "run.duration_s": "rounds",
    "traffic.mean_in_coverage": "arrivals_per_s",
    "traffic.arrivals_per_s": "mean_in_coverage",
}
"""Keys of which a table has one or the other."""
_PATHS = (("mobility", "file"), ("data", "dir"))
ALONE = "{what} is for files with [[compare]], and {path} has none: {keep} for one experiment."
HAS_SWEEP = "{path} has a [sweep]: run it with: python -m vefl_sim sweep {path}"
_MAP = re.compile(r"\.(osm|osm\.xml|net\.xml|sumocfg)(\.gz)?$")
_BARE_WORD = re.compile(r"([A-Za-z_~]|\.{0,2}/)[\w.:/~-]*")  # a name, a part, or a path


def load(path: str | Path, settings: Sequence[str] = ()) -> Experiment:
    """Read an experiment; `settings` are `table.key=value` strings that override it."""
    tables = read_experiment(Path(path))
    if "sweep" in tables:
        raise ExperimentError(HAS_SWEEP.format(path=path))
    if "compare" in tables:
        raise ExperimentError(f"{path} compares several experiments: load them with vefl_sim.load_variants.")
    if "seeds" in tables:
        raise ExperimentError(ALONE.format(what="seeds", path=path, keep="write run.seed"))
    override(tables, settings)
    return from_tables(tables)


def from_tables(tables: Mapping[str, Any]) -> Experiment:
    """An experiment from nested dictionaries, as tomllib gives them."""
    experiment = validated(tables)
    problems = [*contradictions(experiment), *(sentence for _, sentence in ignored_keys(experiment))]
    if problems:
        raise ExperimentError(problems)
    return experiment


def load_resolved(path: Path) -> Experiment:
    """The experiment of a run: it has every key, also those that it does not use."""
    return validated(read_toml(path))


def validated(tables: Mapping[str, Any]) -> Experiment:
    """Every key is known and has a value that it may have; whether they go together is not looked at."""
    try:
        return Experiment.model_validate(tables)
    except ValidationError as error:
        raise ExperimentError(complaints_about(error.errors())) from None


def with_settings(experiment: Experiment, *settings: str) -> Experiment:
    """A copy with some `table.key=value` changed; the way to vary one parameter in a script."""
    tables = experiment.model_dump(exclude_none=True, exclude_defaults=True)
    override(tables, settings)
    return from_tables(tables)


def to_toml(experiment: Experiment) -> str:
    """All keys with their values, defaults included."""
    return tomli_w.dumps(experiment.resolved().model_dump(exclude_none=True))


def read_experiment(path: Path) -> dict[str, Any]:
    """The tables of a file, on top of those of its `base`.

    Paths in a file start from its folder, so that both can be moved, or else from where we are.
    """
    return _read(path, ())


def _read(path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    """`above`: the files that build on this one, to notice a circle."""
    tables = read_toml(path)
    if problems := [*_no_tables(tables)]:
        raise ExperimentError(problems)
    for part in _parts(tables):
        for table, key in _PATHS:
            keys = part.get(table)
            if isinstance(keys, dict) and key in keys:
                keys[key] = _beside(path, keys[key])
    base = tables.pop("base", None)
    if base is None:
        return tables
    if not isinstance(base, str) or not base:
        raise ExperimentError(f'{path}: base = {base!r} must name a TOML file, for example base = "base.toml".')
    below, seen = path.parent / base, (*above, path.resolve())
    if below.resolve() in seen:
        raise ExperimentError(f"{path}: base = {base!r} leads back to a file that builds on it: remove one of them.")
    try:
        return _on_top(_read(below, seen), tables)
    except ExperimentError as error:
        raise ExperimentError([f"{path}, base: {problem}" for problem in error.problems]) from None


def _on_top(base: dict[str, Any], tables: dict[str, Any]) -> dict[str, Any]:
    """Keys of `tables` win, one by one; what is no table of an experiment ([[compare]], [figure]) wins as a whole."""
    merged = base | tables
    for name in base.keys() & tables.keys() & Experiment.model_fields.keys():
        rivals = {_RIVALS.get(f"{name}.{key}") for key in tables[name]}
        kept = {key: value for key, value in base[name].items() if key not in rivals}
        merged[name] = kept | tables[name]
    return merged


def _no_tables(tables: dict[str, Any]) -> Iterator[str]:
    """Tables of an experiment that are none, also those of a variant."""
    variants = tables.get("compare")
    for part in (tables, *(variants if isinstance(variants, list) else ())):
        where = "" if part is tables or not isinstance(part, dict) else f"compare, {part.get('label')!r}: "
        for name in Experiment.model_fields:
            if isinstance(part, dict) and name in part and not isinstance(part[name], dict):
                yield f"{where}{name} must be a table, and not {part[name]!r}."


def _parts(tables: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Wherever a file may say something of an experiment."""
    swept = tables.get("sweep")
    zipped = swept.get("zip") if isinstance(swept, dict) else None
    lists = [found for found in (tables.get("compare"), zipped) if isinstance(found, list)]
    return (part for part in (tables, swept, *chain(*lists)) if isinstance(part, dict))


def _beside(path: Path, name: Any) -> Any:
    """The same name from the folder of a file, if there is something; of each one in a list."""
    if isinstance(name, list):
        return [_beside(path, one) for one in name]
    try:
        return str(there) if name and (there := path.parent / name).exists() else name
    except (OSError, TypeError, ValueError):  # no name of a file at all; whoever opens it will tell
        return name


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file, or one sentence."""
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


def override(tables: dict[str, Any], settings: Sequence[str], *also: str) -> None:
    """Apply --set options in place; `also` are problems that the caller has found with them."""
    if isinstance(settings, str):
        settings = [settings]
    problems = [problem for setting in settings if (problem := _override(tables, setting))]
    if problems := [*problems, *_rivals(settings), *also]:
        raise ExperimentError(problems)


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
    levels = 3 if names[0] == "sweep" and len(names) == 3 else 2  # sweep.radio.prbs=[6, 12]
    if not equals or len(names) != levels or not all(names):
        return f"--set {setting}: write it as table.key=value, for example --set radio.prbs=12."
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        if not _BARE_WORD.fullmatch(text.strip()):
            return f"--set {setting}: the value is not valid TOML; put text in double quotes."
        value = text.strip()  # a shell eats the quotes that TOML wants around a word
    table = tables
    for name in names[:-1]:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            return f"--set {setting}: {name} is not a table in the file."
    if rival := _RIVALS.get(key.strip()):
        table.pop(rival, None)  # the later word wins
    table[names[-1]] = value
    return None
