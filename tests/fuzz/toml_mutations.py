"""Mutations of experiments: of the tables that a TOML file holds, of its text, and of single values."""

import re
import tomllib
from collections.abc import Iterator
from random import Random
from typing import Any

import tomli_w

from vefl_sim.experiment.experiment import TABLES
from vefl_sim.experiment.kinds import FAMILIES

Tree = dict[str, Any]

# Values: plain wrong ones, and numbers and texts at the edge of what a format or a machine can hold.

_MARK = "%%literal%%"  # what follows it in a text is written into the TOML as it stands
NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 7, 255, 256, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64),
    *(10**25, -(10**25), 0.0, -0.0, 0.5, 1e-9, 1e-300, 5e-324, -1.5, 1e9, 1e17, 1e18, 1e300, 1.7976931348623157e308),
    *(float("nan"), float("inf"), float("-inf")),
)
LITERALS = (
    *("9" * 26, "9" * 5000, "-" + "1" * 4400, "1e400", "0x" + "f" * 3000, "0b1"),
    *("1979-05-27T07:32:00Z", "07:32:00", "1_000"),
)
PARTS = (
    *("json:dumps", "math:sin", "builtins:dict", "collections:OrderedDict", "vefl_sim.schemes.pdpc:Pdpc"),
    *("no_such:thing", "vefl_sim:nothing", "a:b:c", ":", "x:", ":x", "..a:b", "a..b:c", "ä:ö"),
    *("tests.scripted:ThreeCars", "vefl_models.cnn:nothing", "vefl_sim.radio.channel:uma"),
    *("tests.scripted:thousand_weights", "decimal:ROUND_UP", "types:NoneType"),
)
STRINGS = (
    *("", " ", "x", "\0", "a\0b", "\x1b[31mred", "a\nb", "a\rb", "\u202eabc", "ä" * 50, "😀", "x" * 300),
    *("y" * 100_000, "\ufeff", "../../etc/passwd", "/", ".", "..", "/dev/null", "/dev/zero", "~", "%s%n", "{0}"),
    *("{__class__}", "nan", "none", "\\", "a/" * 3000, "\x7f", "\x9b31m", "\u2028", "[bold]x[/bold]", "--help", "-q"),
    *("CON", "x.toml", "experiment.toml", "base.toml"),
)
FIGURE_KEYS = ("kind", "x", "y", "lines", "panels", "rows", "marks", "labels", "reference", "threshold", "x_scale", "?")


def any_value(random: Random, depth: int = 0) -> Any:
    """Any value that TOML can hold."""
    kind = random.random()
    if kind < 0.4:
        return random.choice(NUMBERS)
    if kind < 0.6:
        return random.choice(STRINGS)
    if kind < 0.68:
        return random.choice(PARTS)
    if kind < 0.76:
        return _MARK + random.choice(LITERALS)
    if kind < 0.82:
        return random.random() < 0.5
    if kind < 0.86:
        return random.choice([name for family in FAMILIES.values() for name in family])
    if depth > 2:
        return []
    values = [any_value(random, depth + 1) for _ in range(random.choice((0, 1, 2, 2, 3)))]
    if kind < 0.95:
        return values
    return {random.choice(("a", "kind", "", "x.y", "\0", "label")): value for value in values}


def any_key(random: Random) -> tuple[str, str]:
    """The table and the name of any key of an experiment."""
    name, table = random.choice([*TABLES.items()])
    return name, random.choice([*table.model_fields])


def toml_text(tables: Tree) -> str:
    """The tables as TOML, with the literals that Python's numbers cannot hold."""
    return re.sub(f'"{_MARK}([^"]*)"', r"\1", tomli_w.dumps(tables))


# Mutations of the tables


def places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every (table or list, key or number) in a tree."""
    for key, value in [*tree.items()] if isinstance(tree, dict) else [*enumerate(tree)]:
        yield tree, key
        if isinstance(value, (dict, list)):
            yield from places(value)


def _change(random: Random, tables: Tree) -> None:
    """Replace or remove a value, or copy another one to its place; a number mostly becomes another number."""
    if not (found := [*places(tables)]):
        return
    (there, name), (where, key) = random.choice(found), random.choice(found)
    kind, old = random.random(), where[key]
    if kind < 0.15:
        del where[key]
    elif kind < 0.3:
        where[key] = tomllib.loads(tomli_w.dumps({"value": there[name]}))["value"]
    elif type(old) in (int, float) and kind < 0.8:
        where[key] = random.choice((old * 10 ** random.randint(-30, 30), -old, random.choice(NUMBERS)))
    else:
        where[key] = any_value(random)


def _set(random: Random, tables: Tree) -> None:
    """Set any known key to any value."""
    name, key = any_key(random)
    if isinstance(tables.setdefault(name, {}), dict):
        tables[name][key] = any_value(random)


def _add_unknown(random: Random, tables: Tree) -> None:
    """Add up to thousands of keys that nobody knows; the values of a few may be in many tables or lists."""
    tables_of_it = [table for table in (tables, *tables.values()) if isinstance(table, dict)]
    table, value, many = random.choice(tables_of_it), any_value(random, 3), random.choice((1, 3, 30, 1000, 20_000))
    for _ in range(random.choice((0, 2, 10, 80)) if many <= 30 else 0):
        value = {"a": value} if random.random() < 0.5 else [value]
    stem = random.choice(("k", "kind", "ä", "\0", "x\ny", "\x1b[1m", "", "a" * 200, "run", ".", "sweep", "base"))
    table |= {f"{stem}{number or ''}": value for number in range(many)}


def _several(random: Random, tables: Tree) -> None:
    """Set, change or multiply what makes several experiments of one file, or what the file is based on."""
    values = [any_value(random) for _ in range(random.choice((0, 1, 2, 30)))]
    table, key = random.choice(("radio", "run", "zip", "x", "seeds")), random.choice(("prbs", "seed", "y"))
    seeds = random.choice(([1, 2], [1, 1], [], [-1], [2**63], "1-5", 7, [*range(2000)], [1.0], ["1"], {}, [[1]]))
    variant = {"label": random.choice((*STRINGS, 1)), "radio": random.choice(({"prbs": 3}, {"x": 1}, {}, 1))}
    tables |= random.choice(
        (
            *({"sweep": {"seeds": seeds}}, {"sweep": {"seeds": [1], table: {key: values}}}, {"seeds": seeds}),
            {"compare": [variant] * random.choice((1, 2)) + [{"label": f"v{n}"} for n in range(len(values))]},
            {"figure": {random.choice(FIGURE_KEYS): any_value(random) for _ in range(3)}},
            {"base": random.choice((*STRINGS, "./experiment.toml", 1, [], "nothing.toml"))},
        )
    )


TREE_MUTATIONS = (*[_change] * 6, *[_set] * 3, _add_unknown, _several, _several)

# Mutations of the text

JUNK = ("", "[", "]", "=", '"', "\n", "\0", "\udcff", "'''", '"""', ".", "#", "{", "\r", "1e", "\ufeff")


def text_mutation(random: Random, text: str) -> str:
    """Change, remove or insert some characters (bytes that are not UTF-8 are among them), or add what is deep."""
    if random.random() < 0.25:
        depth = random.choice((50, 500, 5000))
        arrays, inline = "[" * depth + "]" * depth, "{a=" * depth + "1" + "}" * depth
        deep = (f"x = {arrays}", f"x = {inline}", f"[{'a.' * depth}a]", f"[[{'b.' * depth}b]]")
        return f"{text}\n{random.choice(deep)}\n"
    for _ in range(random.choice((1, 3, 20))):
        place, length = random.randint(0, len(text)), random.choice((0, 0, 1, 5, 100))
        text = text[:place] + random.choice(JUNK) + text[place + length :]
    return text
