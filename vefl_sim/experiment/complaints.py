"""Turns the validation errors of an experiment into one sentence per key."""

import difflib
import json
from collections.abc import Iterable
from typing import Any

from vefl_sim.core.errors import MAX_PROBLEMS
from vefl_sim.experiment.experiment import TABLES

_KEYS: dict[str, list[str]] = {name: [*table.model_fields] for name, table in TABLES.items()}
"""The keys of each table."""


def complaints_about(errors: Iterable[Any]) -> list[str]:
    """One sentence per key; a value that fits no alternative of a union is one problem, not several."""
    sentences: dict[tuple[Any, ...], str] = {}
    for error in errors:
        where = tuple(error["loc"][:2])
        if where in sentences:
            sentences[where] = _merged(sentences[where], error)
        else:  # the search for the nearest known name takes time, and nobody reads more sentences than are shown
            sentences[where] = _sentence(error) if len(sentences) < MAX_PROBLEMS else ""
    return list(sentences.values())


def _sentence(error: Any) -> str:
    where, kind = error["loc"], error["type"]
    if where[0] == "change":
        return _of_change(error)
    if where == ("run",) and kind == "missing":
        return 'The table [run] is missing: add it with a name, for example name = "first".'
    if kind == "missing" and len(where) < 3:
        return f"{'.'.join(map(str, where))} is missing: add it."
    if kind == "extra_forbidden":
        return unknown(where)
    if len(where) == 1:
        return f"[{where[0]}] must be a table, not {shown(error['input'])}."
    return f"{where[0]}.{where[1]} = {shown(error['input'])}: {_complaint(error)}."


def _of_change(error: Any) -> str:
    _, *place = error["loc"]
    if len(place) < 2:
        return "change must be written as tables: [[change]], each with from_round or at_s and keys."
    return f"change {place[0] + 1}: {place[1]} = {shown(error['input'])}: {_complaint(error)}."


def _merged(first: str, error: Any) -> str:
    if error["type"] == "string_pattern_mismatch":
        return f'{first[:-1]}, or a part of your own as "module:name".'
    if error["type"] == "literal_error":
        return f"{first[:-1]}, or {error['ctx']['expected']}."
    return first


def unknown(where: tuple[Any, ...]) -> str:
    """The sentence for an unknown table, or an unknown key of a table, with the closest name that exists."""
    *table, name = where[:2]
    other = next((known for known, keys in _KEYS.items() if name in keys), None)
    if not table:
        if other:
            return f"{name} is a key of [{other}]: write it below the line [{other}]."
        if scope := _not_modelled(name):
            return f"[{name}] is not a known table{scope}."
        other = nearest(f"[{name}]", ["[[compare]]", *(f"[{known}]" for known in (*_KEYS, "sweep", "figure"))])
        return f"[{name}] is not a known table; the nearest is {other}."
    own = table[0]
    if not other and (scope := _not_modelled(name)):
        return f"{own}.{name} is not a known key of [{own}]{scope}."
    hint = f"did you mean {other}.{name}?" if other else f"the nearest is {own}.{nearest(name, _KEYS[own])}."
    return f"{own}.{name} is not a known key of [{own}]; {hint}"


_NOT_MODELLED = {
    "several gNBs and handover": ("gnb", "gnbs", "cell", "cells", "handover", "sector", "sectors"),
    "interference": ("interference", "interferers", "sinr"),
    "modulation and coding, block errors and HARQ": ("mcs", "cqi", "bler", "harq", "modulation", "coding"),
    "beams and several layers": ("mimo", "beam", "beams", "beamforming", "layers"),
    "batteries and heat": ("battery", "batteries", "soc", "heat", "temperature"),
    "privacy and security": ("privacy", "dp", "epsilon", "encryption", "secure", "security"),
    "links between vehicles": ("sidelink", "v2v", "v2x", "platoon"),
    "weather": ("weather", "rain"),
}
"""What experiments cannot ask for, with words that the name of a table or key for it would contain."""


def _not_modelled(name: Any) -> str:
    """The end of a sentence if an unknown name asks for something that is not modelled; else empty."""
    words = {*str(name).lower().replace("-", "_").split("_")}
    asked = next((subject for subject, own in _NOT_MODELLED.items() if words & {*own}), "")
    return asked and f"; not modelled: {asked} (docs/scope.md says what is)"


def is_key(table: str, key: str) -> bool:
    """Whether experiments have such a key."""
    return key in _KEYS.get(table, ())


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is most similar to `word`."""
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
_PATTERNS = {r"^[UDS]+$": 'it must be a pattern of the letters U, D and S, such as "DDDSU"'}
"""Complaints about texts that do not match a pattern, by the pattern."""


def _complaint(error: Any) -> str:
    if error["type"] == "string_pattern_mismatch":
        pattern = error["ctx"]["pattern"]
        return 'it must be a part as "module:name"' if ":" in pattern else _PATTERNS.get(pattern, _NAME_COMPLAINT)
    template = _COMPLAINTS.get(error["type"])
    if error["type"] == "tuple_type" and error["loc"][1] == "watch":
        return 'it must be a list of parts, as ["module:name"]'
    pair = "a point [x, y]" if error["loc"][1] in ("origin_m", "origin_deg") else "a range [low, high]"
    if isinstance(error["input"], str) and error["type"] in ("int_type", "float_type", "tuple_type"):
        template = f"{template}, without quotes or a unit"
    limits = {name: f"{limit:g}" if isinstance(limit, float) else limit for name, limit in error.get("ctx", {}).items()}
    return template.format(**limits, pair=pair) if template else str(error["msg"]).lower()


def shown(value: Any) -> str:
    """A value as the user may have typed it, shortened to 60 characters."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return "a deeply nested value"
    except ValueError:
        text = str(value)
    return shortened(text)


def shortened(text: str) -> str:
    """At most 60 characters of a text of any length, for an error message."""
    return text if len(text) <= 60 else text[:57] + "..."
