"""Turns a TOML file and --set options into an Experiment, or into one clear sentence per problem."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from vefl_sim.core.errors import ExperimentError
from vefl_sim.core.files import MAX_TEXT_BYTES, read_file
from vefl_sim.experiment.complaints import complaints_about, is_key, shortened, shown
from vefl_sim.experiment.experiment import TABLES, Experiment
from vefl_sim.experiment.fields import Settings, setting_texts
from vefl_sim.experiment.plugins import declaration, load_part
from vefl_sim.experiment.rules import contradictions
from vefl_sim.experiment.unused_keys import is_used, unused_keys

_RIVALS = {
    "run.rounds": "duration_s",
    "run.duration_s": "rounds",
    "traffic.mean_in_coverage": "arrivals_per_s",
    "traffic.arrivals_per_s": "mean_in_coverage",
}
"""Key -> the key of the same table that excludes it."""
_PATHS = (("mobility", "file"), ("data", "dir"), ("model", "start"))
_MAX_BYTES = 1 << 24  # of an experiment, which may list many values and variants; the resolved.toml of a run has one
_MAP = re.compile(r"\.(osm|osm\.xml|net\.xml|sumocfg)(\.gz)?$")
_MAX_DEPTH = 10  # [[sweep.zip]] with ranges as values has six levels


@dataclass(frozen=True)
class ExperimentFile:
    """A TOML file that has been read: its own text, and its tables, merged over those of its `base`."""

    path: Path
    text: str
    tables: Mapping[str, Any]

    def copy_of_tables(self) -> dict[str, Any]:
        """Tables that the caller may change."""
        return deepcopy(dict(self.tables))


def load(file: str | Path | ExperimentFile, settings: Settings = ()) -> Experiment:
    """Read an experiment from a TOML file; `settings` override its keys: {"radio.prbs": 5} or ["radio.prbs=5"]."""
    file = file if isinstance(file, ExperimentFile) else read_experiment(file)
    tables = file.copy_of_tables()
    if "sweep" in tables:
        raise ExperimentError(f"{file.path} has a [sweep]: run it with: python -m vefl_sim sweep {file.path}")
    if "compare" in tables:
        raise ExperimentError(
            f"{file.path} compares several experiments, and this needs one: remove [[compare]] (in Python: load_sweep)."
        )
    if "seeds" in tables:
        raise ExperimentError(
            f"seeds is for files with [[compare]], and {file.path} has none: write run.seed for one experiment, or run "
            "it with --seeds."
        )
    override(tables, settings)
    return from_tables(tables)


def from_tables(tables: Mapping[str, Any]) -> Experiment:
    """An experiment from nested dictionaries, as tomllib returns them."""
    experiment = validated(tables)
    if problems := [*contradictions(experiment), *(sentence for _, sentence in unused_keys(experiment))]:
        raise ExperimentError(problems)
    return experiment


def load_resolved(path: Path) -> Experiment:
    """Read the resolved.toml of a run, which has every key and so also unused ones, which are not refused."""
    return validated(_parse(path, _read_text(path, MAX_TEXT_BYTES)))


def validated(tables: Mapping[str, Any]) -> Experiment:
    """Check that every key is known and its value allowed, but not whether the keys contradict each other."""
    try:
        return Experiment.model_validate(tables)
    except ValidationError as error:
        raise ExperimentError(complaints_about(error.errors())) from None


def with_settings(experiment: Experiment, *settings: str | Mapping[str, Any]) -> Experiment:
    """A copy with some keys changed: with_settings(experiment, {"radio.prbs": 5}) or (experiment, "radio.prbs=5")."""
    tables = experiment.model_dump(exclude_none=True, exclude_defaults=True)
    override(tables, [*chain.from_iterable(map(setting_texts, settings))])
    return from_tables(tables)


def to_toml(experiment: Experiment) -> str:
    """The experiment as TOML, with all keys and their defaults."""
    return as_toml(resolved(experiment))


def as_toml(experiment: Experiment) -> str:
    """The experiment as TOML, with alternative keys only if they are set; no part is asked what it declares."""
    return tomli_w.dumps(experiment.model_dump(exclude_none=True, exclude=None if experiment.change else {"change"}))


def resolved(experiment: Experiment) -> Experiment:
    """The same experiment with the defaults of alternative keys filled in, as written to resolved.toml."""
    run, traffic, data = experiment.run, experiment.traffic, experiment.data
    if run.rounds is None and run.duration_s is None:
        run = run.model_copy(update={"duration_s": 2000.0})
    if traffic.arrivals_per_s is None and is_used(experiment, "traffic.mean_in_coverage"):
        traffic = traffic.model_copy(update={"mean_in_coverage": experiment.mean_in_coverage})
    if declaration("data.kind", data.kind, "any_number", False):
        kind = load_part("data.kind", data.kind)
        counts = {key: getattr(data, key) or getattr(kind, key) for key in ("train_samples", "test_samples")}
        data = data.model_copy(update=counts)
    return experiment.model_copy(update={"run": run, "traffic": traffic, "data": data})


def read_experiment(path: str | Path) -> ExperimentFile:
    """Read a TOML file, and the `base` files that it builds on.

    A relative path in a file starts at the folder of the file, so that both can be moved together, or, if it does not
    exist there, at the current directory.
    """
    text = _read_text(Path(path))
    return ExperimentFile(Path(path), text, _tables(Path(path), text, ()))


def _tables(path: Path, text: str, above: tuple[Path, ...]) -> dict[str, Any]:
    """The tables of a file, merged over those of its bases; `above` are the files that build on it."""
    tables = _parse(path, text)
    if problems := [*_values_instead_of_tables(tables)]:
        raise ExperimentError(problems)
    for section in _sections(tables):
        for table, key in _PATHS:
            keys = section.get(table)
            if isinstance(keys, dict) and key in keys:
                keys[key] = _relative_to_file(path, keys[key])
    base = tables.pop("base", None)
    if base is None:
        return tables
    if not isinstance(base, str) or not base:
        raise ExperimentError(f'{path}: base = {shown(base)} must name a TOML file, for example base = "base.toml".')
    below, builders = path.parent / base, (*above, path.resolve())
    try:
        text = _read_text(below)
        if below.resolve() in builders:
            raise ExperimentError(f"{base} leads back to a file that builds on it: remove one of them.")
        return _merged(_tables(below, text, builders), tables)
    except ExperimentError as error:
        raise ExperimentError([f"{path}, base: {problem}" for problem in error.problems]) from None


def _merged(base: dict[str, Any], tables: dict[str, Any]) -> dict[str, Any]:
    """Keys of `tables` replace those of `base` one by one; [[compare]], [sweep] and [figure] as a whole.

    A list of seeds replaces `run.seed` of the base.
    """
    merged = base | tables
    for name in base.keys() & tables.keys() & TABLES.keys():
        rivals = {_RIVALS.get(f"{name}.{key}") for key in tables[name]}
        kept = {key: value for key, value in base[name].items() if key not in rivals}
        merged[name] = kept | tables[name]
    if "seeds" in tables or "seeds" in tables.get("sweep", {}):
        merged["run"] = {key: value for key, value in merged.get("run", {}).items() if key != "seed"}
    return merged


def _values_instead_of_tables(tables: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence for each name of a table, also in a variant, whose value is not a table."""
    variants = tables.get("compare")
    for section in (tables, *(variants if isinstance(variants, list) else ())):
        where = "" if section is tables or not isinstance(section, dict) else f"compare, {section.get('label')!r}: "
        for name in TABLES:
            if isinstance(section, dict) and name in section and not isinstance(section[name], dict):
                yield f"{where}{name} must be a table, not {shown(section[name])}."


def _sections(tables: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all places of a file that may contain keys of an experiment: the file itself, [sweep] and variants."""
    swept = tables.get("sweep")
    zipped = swept.get("zip") if isinstance(swept, dict) else None
    lists = [value for value in (tables.get("compare"), zipped) if isinstance(value, list)]
    return (section for section in (tables, swept, *chain(*lists)) if isinstance(section, dict))


def _relative_to_file(path: Path, name: Any) -> Any:
    """A path or list of paths in the TOML file `path`, as seen from its folder; unchanged if not found there."""
    if isinstance(name, list):
        return [_relative_to_file(path, one) for one in name]
    try:
        return str(candidate) if name and (candidate := path.parent / name).exists() else name
    except (OSError, TypeError, ValueError):  # not a valid path, which is reported when the file is opened
        return name


def _read_text(path: Path, most_bytes: int = _MAX_BYTES) -> str:
    """The text of a TOML file; any problem with the file is reported in one sentence."""
    try:
        return read_file(path, most_bytes).decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        raise ExperimentError(f"{path}: there is no such file.") from None
    except OSError as error:
        raise ExperimentError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise ExperimentError(f"{path} is not a text file: an experiment is TOML in UTF-8.") from None


def _parse(path: Path, text: str) -> dict[str, Any]:
    """The tables of a TOML text; any problem with it is reported in one sentence that names its file."""
    try:
        tables = tomllib.loads(text)
        _require_shallow(tables)
        return tables
    except ValueError as error:
        if _MAP.search(path.name):
            raise ExperimentError(
                f"{path} is a map: name it as mobility.file of an experiment, as experiments/own_map.toml does, or "
                f"create an experiment with python -m vefl_sim map import (an .osm or .net.xml)."
            ) from None
        problem = error if isinstance(error, tomllib.TOMLDecodeError) else "it has a number with thousands of digits"
        raise ExperimentError(f"{path} is not valid TOML: {problem}.") from None
    except RecursionError:
        raise ExperimentError(f"{path} is nested too deeply to be an experiment.") from None


def _require_shallow(tables: Any, most_levels: int = _MAX_DEPTH) -> None:
    """Raise RecursionError for tables deeper than those of any experiment; dotted names make them without brackets."""
    if most_levels == 0:
        raise RecursionError
    for value in tables.values() if isinstance(tables, dict) else tables:
        if isinstance(value, (dict, list)):
            _require_shallow(value, most_levels - 1)


def override(tables: dict[str, Any], settings: Settings) -> None:
    """Apply --set options to `tables` in place; a key that one of them excludes is removed from the tables before."""
    settings = setting_texts(settings)
    for key, _, value in (setting.partition("=") for setting in settings):
        name = key.strip().partition(".")[0]
        if value.strip() and (rival := _RIVALS.get(key.strip())) and isinstance(tables.get(name), dict):
            tables[name].pop(rival, None)
    if problems := [*filter(None, (_override(tables, setting) for setting in settings))]:
        raise ExperimentError(problems)


def _override(tables: dict[str, Any], setting: str) -> str | None:
    """Apply one --set option in place; return what is wrong with it, if anything."""
    key, equals, text = setting.partition("=")
    setting = shortened(setting)
    names = key.strip().split(".")
    levels = {"sweep": max(2, min(len(names), 3)), "change": 4}.get(names[0], 2)  # sweep.radio.prbs=[6, 12]
    if names[0] == "compare":
        return f"--set {setting}: [[compare]] cannot be changed by --set: change it in the file."
    if not equals or len(names) != levels or not all(names):
        return f"--set {setting}: write it as table.key=value, for example --set radio.prbs=12."
    table = tables
    if names[0] == "change":
        if not (len(names) == 4 and names[1].isdecimal() and 1 <= int(names[1]) <= len(tables.get("change", ()))):
            return (
                f"--set {setting}: write it as change.1.table.key=value, with the number of a [[change]] of the file."
            )
        table, names = tables["change"][int(names[1]) - 1], names[2:]
    for name in names[:-1]:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            return f"--set {setting}: {name} is not a table in the file."
    if not text.strip():  # remove the key, so that its default applies
        known = names[-1] in table or is_key(*names[:2])
        table.pop(names[-1], None)
        return None if known else f"--set {setting}: there is no such key that could be removed."
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        value = text.strip()  # text, whose quotes a shell removes, or a number with a unit, which its key refuses
    table[names[-1]] = value
    return None
