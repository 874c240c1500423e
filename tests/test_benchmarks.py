"""The logic of `python benchmarks`; nothing here depends on how long anything takes."""

import ast
import os
import runpy
from pathlib import Path
from unittest import mock

import pytest

ROOT = Path(__file__).parents[1]
with mock.patch.dict(os.environ):  # the harness limits its process to one thread
    command = runpy.run_path(str(ROOT / "benchmarks"), run_name="benchmarks")

    from harness import MACHINE, Case, Figures, Skipped, Turn, measured

    from history import History, ratios

main = command["main"]
CALLS: list[str] = []
VALUES: dict[str, list[float]] = {}


def prepare_slow() -> Turn:
    return _case("slow", "slow: run, s")


def prepare_fast() -> Turn:
    return _case("fast", "fast: run, × real time")


def prepare_nothing() -> Turn:
    raise Skipped("no SUMO here")


def _case(name: str, label: str) -> Turn:
    CALLS.append(f"prepare {name}")

    def turn() -> Figures:
        CALLS.append(name)
        return {label: VALUES[name][CALLS.count(name) - 1]}

    return turn


SLOW, FAST = (
    Case("slow", f"{__name__}:prepare_slow", "less is better"),
    Case("fast", f"{__name__}:prepare_fast", "more"),
)


@pytest.fixture(autouse=True)
def values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.fixed_calculation", lambda: {MACHINE: 20.0})
    CALLS.clear()
    VALUES.update(slow=[2.0, 9.0, 1.0], fast=[10.0, 30.0, 20.0])


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path, "EPYC, 2 cores")


def run(history: History, *arguments: str) -> int:
    CALLS.clear()
    return main([*arguments, "--turns", "3"], history, [SLOW, FAST])


def test_cases_take_turns_and_figures_are_medians() -> None:
    prepare = {"slow": prepare_slow, "absent": prepare_nothing, "fast": prepare_fast}
    figures, skipped = measured(prepare, 3)
    assert list(CALLS) == ["prepare slow", "prepare fast", "slow", "fast", "slow", "fast", "slow", "fast"]
    assert figures == {"slow: run, s": 2.0, "fast: run, × real time": 20.0}
    assert skipped == {"absent": "no SUMO here"}


@pytest.mark.parametrize(
    ("label", "now", "before", "worse"),
    [
        ("network, × real time", 20.0, 30.0, 1.5),
        ("learning, samples per s", 30.0, 20.0, 2 / 3),
        ("slot, µs per slot", 20.0, 30.0, 2 / 3),
        ("gap, %", 0.0, 0.0, 1.0),
        ("gap, %", 0.1, 0.0, float("inf")),
    ],
)
def test_a_ratio_above_one_is_worse_whatever_the_unit(label: str, now: float, before: float, worse: float) -> None:
    same = ratios({MACHINE: 20.0, label: now}, {MACHINE: 20.0, label: before})
    assert same == pytest.approx({MACHINE: 1.0, label: worse})


def test_check_compares_with_the_baseline_of_this_machine(history: History, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(history, "--baseline") == 0
    assert run(history, "--check") == 0
    VALUES["fast"] = [10.0] * 3
    assert run(history) == 0, "without --check a regression is only shown"
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["fast:", "run,", "×", "real", "time", "10", "20", "20", "2.00"] in shown
    assert run(history, "--check") == 1
    assert "regression: fast: run, × real time is 2.00 times worse" in capsys.readouterr().err


def test_the_baseline_of_another_machine_is_named_and_not_used(
    history: History, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = History(tmp_path, "Xeon, 64 cores")
    assert run(other, "--baseline") == 0
    VALUES["slow"] = [99.0] * 3
    capsys.readouterr()
    assert run(history, "--check") == 2
    assert CALLS == [], "nothing is measured in vain"
    assert "Not compared with the baseline of another machine (Xeon, 64 cores)" in capsys.readouterr().err
    assert run(history, "--baseline") == 0
    assert [one.baseline().figures["slow: run, s"] for one in (other, history)] == [2.0, 99.0]


def test_every_case_has_its_function() -> None:
    names = [case.name for case in command["CASES"]]
    assert len({*names}) == len(names) > 5
    for case in command["CASES"]:
        module, _, function = case.place.partition(":")
        tree = ast.parse((ROOT / "benchmarks" / f"{module}.py").read_text())
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, case
