"""Write docs/commands.md from the program's own help texts, so that it always matches the commands.

python docs/commands.py
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from vefl_sim.cli.main import app

HEADER = """# Commands
Every command and option of `python -m vefl_sim`, as `--help` prints them. Written by `python docs/commands.py`.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | a run or a point of a sweep failed, `verify` or `check` found a difference, or a figure lacks points |
| 2 | the input is wrong: a sentence on standard error names the key, option or file, and what to do |
| 130 | stopped by Ctrl-C or another stop signal; a sentence says what is saved, and how to continue |

RUN is a run directory, or the beginning of its name in `runs/`; if several match, the newest is used. The
command `run` may be left out: `python -m vefl_sim EXPERIMENT.toml`.
"""


def commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """The command with its full name, or all commands of a group."""
    if not hasattr(command, "commands"):
        yield name, command
    for part, below in getattr(command, "commands", {}).items():
        yield from commands(f"{name} {part}".strip(), below)


def usage(name: str, command: Any) -> str:
    """The command line with its arguments."""
    arguments = [_metavar(p) for p in command.params if p.param_type_name == "argument"]
    options = ["[OPTIONS]"] if any(p.param_type_name == "option" for p in command.params) else []
    return " ".join(["python -m vefl_sim", name, *options, *arguments])


def row(parameter: Any) -> str:
    """An argument or option as a row of the table."""
    default = parameter.default
    shown = "" if default is None or default is False or parameter.required else f" Default: `{default}`."
    return f"| {_name(parameter)} | {_plain(parameter.help)}{shown} |"


def _plain(text: str) -> str:
    """A help text as Markdown that can stand in a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<")


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{_metavar(parameter)}`".replace("|", "\\|")
    value = "" if parameter.is_flag else f" {parameter.metavar or parameter.opts[0].strip('-').upper()}"
    return ", ".join(f"`{name}{value}`" for name in parameter.opts)


def _metavar(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    return (name if parameter.required else f"[{name}]") + ("…" if parameter.nargs == -1 else "")


def section(name: str, command: Any) -> str:
    """The section about one command, in Markdown."""
    lines = [f"## {name}", _plain(command.help), "", f"`{usage(name, command)}`"]
    if command.params:
        lines += ["", "| argument, option | meaning |", "|---|---|", *map(row, command.params)]
    return "\n".join(lines)


def reference() -> str:
    """The whole page, in Markdown."""
    group = typer.main.get_group(app)
    start = "## The program itself\n" + _plain(group.help or "")
    start += "\n\n| option | meaning |\n|---|---|\n" + "\n".join(map(row, group.params))
    sections = [section(name, command) for name, command in commands("", group)]
    return HEADER + "\n" + "\n\n".join([start, *sections]) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("commands.md").write_text(reference())
