"""Parsing TOML table by table gives what tomllib gives, values and errors, however the text is cut."""

import tomllib
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vefl_sim.core.files import parse_toml

PIECES = [
    *("a = 1\n", "[a]\n", "[a.b]\n", "[b]\n", "[[c]]\n", "c = [\n", "[1],\n", "]\n", 'd = """\n', '"""\n', "'''\n"),
    *(
        "e = { x = 1 }\n",
        "a.b = 2\n",
        "[ b ]\n",
        "# [f]\n",
        "x = [1, 2] # [\n",
        "\n",
        "[\n",
        '["a"]\n',
        "y = 1979-05-27\n",
    ),
]


def outcome(parse: Callable[[str], dict[str, Any]], text: str) -> dict[str, Any] | str:
    try:
        return parse(text)
    except tomllib.TOMLDecodeError as error:
        return str(error)


@given(st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
def test_tables_and_errors_are_those_of_tomllib(text: str) -> None:
    assert outcome(parse_toml, text) == outcome(tomllib.loads, text)


def test_a_change_of_the_result_does_not_reach_the_next() -> None:
    text = "[a]\nx = [1, [2]]\n[b]\ny = { z = 1 }\n"
    first = parse_toml(text)
    first["a"]["x"][1].append(3)
    first["b"]["y"]["z"] = 4
    assert parse_toml(text) == tomllib.loads(text)
