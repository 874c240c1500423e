"""The JSON schema of experiment files, for editors: the tables of an experiment, [[compare]], [sweep] and [figure]."""

from copy import deepcopy
from typing import Any

from vefl_sim.analysis.figures.request import Request
from vefl_sim.experiment.experiment import Experiment

Json = dict[str, Any]
_SEEDS: Json = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}


def file_schema() -> Json:
    """The schema of a TOML file: one experiment, or several by [[compare]], [sweep] or both.

    A file with a `base` may leave out run.name, which its base then has.
    """
    schema = Experiment.model_json_schema()
    tables, name = schema["properties"], schema["$defs"]["RunTable"].pop("required")
    changes, change = tables.pop("change"), schema["$defs"]["Change"]
    change |= _object(change["properties"] | _references(tables))
    schema["properties"] = tables | {
        "change": changes,
        "base": {"type": "string", "description": "TOML file whose keys this file adds to or replaces."},
        "seeds": _SEEDS | {"description": "Seeds with which every variant of [[compare]] is run."},
        "compare": _array(_variant(tables), "Variants of the experiment, each with the keys in which it differs."),
        "sweep": _sweep(schema["$defs"], tables),
        "figure": _figure(schema["$defs"]),
    }
    del schema["required"]
    with_name = {"required": ["run"], "properties": {"run": {"required": name}}}
    return schema | {"if": {"not": {"required": ["base"]}}, "then": with_name}


def _array(items: Json, description: str) -> Json:
    return {"type": "array", "items": items, "minItems": 1, "description": description}


def _object(properties: Json, **more: Any) -> Json:
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def _variant(tables: Json) -> Json:
    own = {"label": {"type": "string", "minLength": 1}, "change": _array({"$ref": "#/$defs/Change"}, "Changes.")}
    return _object(own | _references(tables), required=["label"])


def _references(tables: Json) -> Json:
    return {name: {"$ref": table["$ref"]} for name, table in tables.items()}


def _sweep(definitions: Json, tables: Json) -> Json:
    """[sweep]: a list of values for each swept key, and [[sweep.zip]] for keys that change together."""
    lists = {name: _lists(definitions[table["$ref"].rsplit("/", 1)[1]]) for name, table in tables.items()}
    lists["change"] = {"type": "object", "description": "Values of keys of a [[change]], by its number."}
    zipped = _array(_object(lists), "Keys that change together: lists of the same length.")
    return _object(lists | {"seeds": _SEEDS, "zip": zipped}, description="The values to run, every combination once.")


def _lists(table: Json) -> Json:
    """A list of values in place of each key of a table."""
    return _object({key: {"type": "array", "items": deepcopy(value)} for key, value in table["properties"].items()})


def _figure(definitions: Json) -> Json:
    figure = Request.model_json_schema()
    definitions |= figure.pop("$defs", {})
    names: Json = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    for key in ("lines", "panels", "rows"):
        figure["properties"][key] = names | {"description": figure["properties"][key]["description"]}
    text: Json = {"type": "string"}
    label = {
        "anyOf": [text, {"type": "object", "additionalProperties": text}]
    }  # TOML reads radio.prbs = "…" as a table
    figure["properties"]["labels"]["additionalProperties"] = label
    return figure
