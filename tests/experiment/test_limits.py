"""Limits of the keys: numbers that physics or double precision cannot bear get one sentence, however long they are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vefl_sim.core import memory
from vefl_sim.core.errors import BadInput, ExperimentError
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.toml import load
from vefl_sim.learning.datasets.signs import signs
from vefl_sim.sweep.points import load_sweep


def refused(*settings: str, text: str = '[run]\nname = "limits"\n', tmp_path: Path) -> tuple[str, ...]:
    """The sentences with which an experiment with these --set options is refused."""
    file = tmp_path / "limits.toml"
    file.write_text(text)
    with pytest.raises(ExperimentError) as caught:
        (load_sweep if "[sweep" in text or "[[compare" in text else load)(file, settings)
    return caught.value.problems


def numbers(schema: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """All numbers in a JSON schema, each with the path that leads to it."""
    if isinstance(schema, dict):
        if schema.get("type") in ("number", "integer"):
            yield where, schema
        for name, inner in schema.items():
            yield from numbers(inner, f"{where}/{name}")
    elif isinstance(schema, list):
        for inner in schema:
            yield from numbers(inner, where)


def test_every_number_has_limits_on_both_sides() -> None:
    found = dict(numbers(Experiment.model_json_schema()["$defs"]))
    assert len(found) > 60
    for where, schema in found.items():
        assert {"maximum", "exclusiveMaximum"} & schema.keys(), where
        assert {"minimum", "exclusiveMinimum"} & schema.keys(), where


def test_a_run_has_at_most_a_million_rounds(tmp_path: Path) -> None:
    [sentence] = refused("run.duration_s=5e7", "vefl.round_s=0.5", tmp_path=tmp_path)
    assert "100000000 rounds of vefl.round_s = 0.5, and 1000000 is the maximum" in sentence


def test_a_number_of_thousands_of_digits_in_a_file_is_no_toml(tmp_path: Path) -> None:
    [sentence] = refused(text=f'[run]\nname = "limits"\nseed = {"9" * 5000}\n', tmp_path=tmp_path)
    assert sentence.endswith("is not valid TOML: it has a number with thousands of digits.")


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("rat.efficiency_weight=1e300", "rat.efficiency_weight = 1e+300: it must be at most 1e+12."),
        (f"data.bits_per_value={'9' * 26}", f"data.bits_per_value = {'9' * 26}: it must be at most 1024."),
        ("vefl.round_s=5s", 'vefl.round_s = "5s": it must be a number, without quotes or a unit.'),
        ("sla.base_fee=1-5", 'sla.base_fee = "1-5": it must be a range [low, high], without quotes or a unit.'),
        ("vefl.bugdet=", "--set vefl.bugdet=: there is no such key that could be removed."),
        ("sweep.radio.prb=", "--set sweep.radio.prb=: there is no such key that could be removed."),
        ("radio.nonsense=1", "radio.nonsense is not a known key of [radio]; the nearest is radio.antennas."),
        ("radio.prbs", "--set radio.prbs: write it as table.key=value, for example --set radio.prbs=12."),
        ("prbs=1", "--set prbs=1: write it as table.key=value, for example --set radio.prbs=12."),
        ("radio.a.b=1", "--set radio.a.b=1: write it as table.key=value, for example --set radio.prbs=12."),
        (f"run.seed={'9' * 5000}", "it must be a whole number, without quotes or a unit."),
        (f"run.seed={'[' * 3000}{']' * 3000}", "it must be a whole number, without quotes or a unit."),
    ],
)
def test_a_bad_value_of_set_is_one_short_sentence(setting: str, sentence: str, tmp_path: Path) -> None:
    (problem,) = refused(setting, tmp_path=tmp_path)
    assert problem.endswith(sentence)
    assert len(problem) < 150


def test_a_long_value_is_not_shown_in_full(tmp_path: Path) -> None:
    (sentence,) = refused(text="run = [" + "1, " * 1000 + "]", tmp_path=tmp_path)
    assert sentence.startswith("run must be a table, not [1, 1")
    assert len(sentence) < 100


@pytest.mark.parametrize(("table", "more"), [("vefl", ("There are 99980 more problems.",)), ("sweep.vefl", ())])
def test_the_first_twenty_of_many_unknown_keys(table: str, more: tuple[str, ...], tmp_path: Path) -> None:
    """The search for the nearest name takes long: this test would take minutes if all were searched for."""
    text = f'run.name = "x"\n[{table}]\n' + "".join(f"k{number} = 1\n" for number in range(100_000))
    sentences = refused(text=text, tmp_path=tmp_path)
    assert all(f"vefl.k{number} is not a known key" in sentences[number] for number in range(20))
    assert sentences[20:] == more


def test_long_lists_are_counted_before_they_are_compared(tmp_path: Path) -> None:
    values = ", ".join(str(number) for number in range(200_000))
    (sentence,) = refused(text=f'run.name = "x"\n[sweep.radio]\nprbs = [{values}]', tmp_path=tmp_path)
    assert sentence.endswith("200000 points are more than the maximum of 100000: shorten a list.")
    variants = "".join(f'[[compare]]\nlabel = "{number}"\n' for number in range(5000))
    (sentence,) = refused(text=f'run.name = "x"\n{variants}', tmp_path=tmp_path)
    assert sentence == "5000 [[compare]] are more than the maximum of 1000: use a [sweep]."


def test_pictures_that_do_not_fit_into_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_mb", lambda: 8 * 1024.0)
    with pytest.raises(BadInput, match=r"1000000 pictures of 128 × 128 pixels need 91.6 GiB of memory, and 8.0 GiB"):
        signs(1_000_000, 10, 128, np.random.default_rng(1))
