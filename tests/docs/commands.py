"""The lines of a shell block: split into commands, checked without running them, and run."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from tests.command_line import ENVIRONMENT, ROOT, call
from vefl_sim.cli.main import app

PROGRAM = ["python", "-m", "vefl_sim"]
_FOLDERS = ("benchmarks", "docs", "examples", "experiments", "models", "tests", "vefl_sim")
_TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def command_lines(text: str) -> list[list[str]]:
    """The words of every line, without comments; operators such as && are words of their own."""
    lines = (_words(line) for line in text.replace("\\\n", " ").splitlines())
    return [words for words in lines if words]


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;<>")
    lexer.whitespace_split = True
    return [*lexer]


def check_line(words: Sequence[str]) -> None:
    """Whether the commands, options, targets and files of the project that a line names exist."""
    for command in _commands(words):
        if command[:3] == PROGRAM:
            parsed(command[3:])
        if command[0] == "make":
            missing = {word for word in command[1:] if "=" not in word} - _TARGETS
            assert not missing, f"the Makefile has no target {missing}"
        for word in command:
            if word.partition("/")[0] in _FOLDERS and "/" in word:
                assert (ROOT / word).exists(), f"{word} does not exist"


def parsed(arguments: Sequence[str]) -> Any:
    """The command of vefl_sim that these arguments call, as `main` finds it, after a check of its options."""
    command: Any = typer.main.get_group(app)
    words = [*arguments] if arguments[0] in {*command.commands, "--version"} else ["run", *arguments]
    context = command.make_context("vefl_sim", [*words])
    while hasattr(command, "commands") and words[0] != "--version":
        name, command, words = command.resolve_command(context, words)
        context = command.make_context(name, [*words], parent=context)
    return command


def knows(command: Sequence[str], options: Sequence[str]) -> bool:
    """Whether it is a command of vefl_sim that has these options."""
    if [*command[:3]] != PROGRAM:
        return False
    known = {name for option in parsed(command[3:]).params for name in option.opts}
    return known >= {word for word in options if word.startswith("--")}


def _commands(words: Sequence[str]) -> Iterator[list[str]]:
    """The commands of a line, without redirections."""
    command: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in (">", "<"):
            next(rest)
        elif re.fullmatch(r"[&|;]+", word):
            yield command
            command = []
        else:
            command.append(word)
    yield command


def run_lines(text: str, folder: Path, options: Sequence[str], code: int) -> None:
    """Run the lines of a block; every command of vefl_sim that has `options` gets them, and `code` is expected."""
    lines = command_lines(text)
    commands = [command for words in lines for command in _commands(words)]
    assert not options or any(knows(command, options) for command in commands), f"no command has {options}"
    for words in lines:
        operators = {word for word in words if re.fullmatch(r"[&|;<>]+", word)}
        assert operators <= {"&&", ">"}, f"the test cannot run {shlex.join(words)}"
        output = "".join(_run(command, folder, options, code) for command in _commands(words))
        if ">" in operators:
            (folder / words[-1]).write_text(output)


def _run(command: Sequence[str], folder: Path, options: Sequence[str], code: int) -> str:
    """Commands of vefl_sim run in this process, because a new one needs two seconds to import what it uses."""
    if [*command[:3]] == PROGRAM:
        done = call(*command[3:], *(options if knows(command, options) else ()), cwd=folder)
    else:
        words = [sys.executable if word == "python" else word for word in command]
        done = subprocess.run(words, cwd=folder, env=ENVIRONMENT, text=True, capture_output=True)
    assert done.returncode == code, f"{shlex.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout
