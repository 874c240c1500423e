"""Write docs/experiment.md from the models of vefl_sim.experiment.experiment, so that it always matches the code.

The column "paper or our choice" comes from docs/choices.toml. Also writes the sources that docs/design.md prints.

python docs/reference.py
"""

import inspect
import re
import tomllib
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from textwrap import dedent
from typing import Any

from pydantic_core import PydanticUndefined

from vefl_sim.experiment.changes import AT_ANY_TIME, BETWEEN_ROUNDS
from vefl_sim.experiment.experiment import TABLES, Change, Experiment

HEADER = """# Experiment reference
Every table and key of an experiment file, with its default. Only `run.name` is required. Written by
`python docs/reference.py` from the models that check the files; `python -m vefl_sim schema` prints them as JSON schema.

Files for many runs also have `[[compare]]` ([schemes](schemes.md)), `[sweep]` ([sweeps](sweeps.md)) and `[figure]`
([figures](figures.md)).

The last column says where a default comes from. "paper": Pervej, Jin and Dai state it (labels such as `ProbSuc` are
those of their LaTeX source; the [glossary](glossary.md) explains the symbols). "ours": they do not state it, or we
depart from it, and why. Values that were fitted to the paper's network are in `experiments/paper/base.toml`
([how](reproduction.md#calibration)). "technical": no part of the system model.

A file may begin with `base = "other.toml"`, a path relative to its folder: it then has all keys of that file, and its
own keys replace those of the base one by one; write the default to undo a key of the base. A base may have a base;
`[[compare]]`, `[sweep]` and `[figure]` of a file replace those of its base.

On the command line, `--set table.key=value` sets a key, also instead of one that excludes it; `--set table.key=`
removes it, so that its default applies (an empty text is `--set 'table.key=""'`).

A value `"module:name"` is a part of your own: a class or function in a module that Python can import.
"""


CHOICES = tomllib.loads(Path(__file__).with_name("choices.toml").read_text())

_TYPES = {"number": "number", "integer": "integer", "boolean": "true or false", "string": "text", "object": "table"}


def shown(value: Any) -> str:
    """A default as it is written in TOML."""
    if value is None or value is PydanticUndefined:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(shown, value))}]"
    return f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def allowed(schema: dict[str, Any]) -> str:
    """The allowed values of a key, in a few words."""
    if "enum" in schema:
        return " \\| ".join(f'`"{value}"`' for value in schema["enum"])
    if "const" in schema:
        return f"`{shown(schema['const'])}`"
    if "anyOf" in schema:
        return " \\| ".join(text for option in schema["anyOf"] if (text := allowed(option)))
    if schema.get("format") == "point":
        return "point [x, y]"
    if "items" in schema:
        return f"list of {allowed(schema['items'])}"
    if schema.get("type") == "array":
        return f"range of {allowed(schema['prefixItems'][0])}"
    if ":" in schema.get("pattern", ""):
        return '`"module:name"`'
    return _TYPES.get(schema.get("type", ""), "") + limits(schema)


def limits(schema: dict[str, Any]) -> str:
    """The bounds of a number, such as '≥ 0 ≤ 1'."""
    signs = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    return "".join(f" {sign} {schema[key]:g}" for key, sign in signs.items() if key in schema)


def section(name: str, schema: dict[str, Any], table: Any) -> str:
    """The section about one TOML table, in Markdown."""
    header = ["| key | values | default | meaning | paper or our choice |", "|---|---|---|---|---|"]
    lines = [f"## [{name}]", schema["description"], "", *header]
    for key, field in schema["properties"].items():
        default = shown(table.model_fields[key].default)
        meaning = " ".join(field["description"].split()).replace("|", "\\|")
        cells = (f"`{key}`", allowed(field), f"`{default}`" if default else "", meaning, CHOICES[name][key])
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def reference() -> str:
    """The whole page, in Markdown."""
    definitions = Experiment.model_json_schema()["$defs"]
    sections = []
    for name, table in {**TABLES, "[change]": Change}.items():
        sections.append(section(name, definitions[table.__name__], table))
    later = ", ".join(f"`{key}`" for key in sorted(BETWEEN_ROUNDS))
    sections.append(f"Keys that can change with `from_round`: {later}. With `at_s`: {' and '.join(AT_ANY_TIME)}.")
    return HEADER + "\n" + "\n\n".join(sections) + "\n"


def design() -> str:
    """docs/design.md with its printed sources up to date: after <!-- not run: source of module name … -->."""
    page = Path(__file__).with_name("design.md").read_text()
    return re.sub(r"(<!-- not run: source of (\S+) ([^>]*) -->\n)```python\n.*?```\n", _source, page, flags=re.DOTALL)


def _source(found: re.Match[str]) -> str:
    module, blocks = import_module(f"vefl_sim.{found[2]}"), []
    for name in found[3].split():
        blocks.append(inspect.getsource(attrgetter(name)(module)))
    return f"{found[1]}```python\n{dedent(chr(10).join(blocks))}```\n"


if __name__ == "__main__":
    Path(__file__).with_name("design.md").write_text(design())
    Path(__file__).with_name("experiment.md").write_text(reference())
