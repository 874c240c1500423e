"""Seeds of a comparison: in the file, on the command line, and contradictions."""

from pathlib import Path

import pytest

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.toml import load
from vefl_sim.sweep.points import load_sweep
from vefl_sim.sweep.seeds import parse_seeds

RUN = '[run]\nname = "x"\nrounds = 1\n'
TWO = '[[compare]]\nlabel = "a"\n[[compare]]\nlabel = "b"\nscheme = { kind = "fdpc" }\n'


def problem(folder: Path, text: str, *settings: str, seeds: list[int] | None = None) -> str:
    """The only error sentence about this file."""
    (folder / "x.toml").write_text(text)
    with pytest.raises(ExperimentError) as caught:
        load_sweep(folder / "x.toml", settings, seeds)
    [sentence] = caught.value.problems
    assert sentence.endswith(".")
    return sentence


def loaded(folder: Path, text: str, seeds: list[int] | None = None) -> list[tuple[int, str]]:
    (folder / "x.toml").write_text(text)
    return [(point.seed, str(point.label)) for point in load_sweep(folder / "x.toml", (), seeds).points]


def test_every_variant_is_loaded_with_every_seed(tmp_path: Path) -> None:
    assert loaded(tmp_path, "seeds = [7, 3]\n" + RUN + TWO) == [(7, "a"), (7, "b"), (3, "a"), (3, "b")]


def test_given_seeds_override_those_of_the_file_and_its_run_seed(tmp_path: Path) -> None:
    assert loaded(tmp_path, "seeds = [7, 3]\n" + RUN + TWO, [5]) == [(5, "a"), (5, "b")]
    assert loaded(tmp_path, RUN + "seed = 9\n" + TWO, [5, 6]) == [(5, "a"), (5, "b"), (6, "a"), (6, "b")]


def test_without_seeds_the_seed_of_the_run_is_used(tmp_path: Path) -> None:
    assert loaded(tmp_path, RUN + "seed = 9\n" + TWO) == [(9, "a"), (9, "b")]
    assert loaded(tmp_path, RUN + TWO) == [(1, "a"), (1, "b")]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("[]", "empty"),
        ("3", "a list of whole numbers"),
        ('"1-3"', "a list of whole numbers"),
        ("[1, 2.5]", "a list of whole numbers"),
        ("[1, true]", "a list of whole numbers"),
        ("[1, 2, 1]", "1 appears twice"),
        ("[1, -2]", "-2 is not"),
        ("[9223372036854775807, 9223372036854775808]", "9223372036854775808 is not"),
    ],
)
def test_bad_seeds_get_one_sentence(written: str, message: str, tmp_path: Path) -> None:
    sentence = problem(tmp_path, f"seeds = {written}\n{RUN}{TWO}")
    assert sentence.startswith("seeds: ")
    assert message in sentence


def test_seeds_and_a_seed_exclude_each_other(tmp_path: Path) -> None:
    own = '[[compare]]\nlabel = "a"\nrun = { seed = 2 }\n'
    assert "run.seed and seeds exclude each other" in problem(tmp_path, "seeds = [1]\n" + RUN + "seed = 3\n" + TWO)
    assert "compare, 'a': run.seed and seeds exclude" in problem(tmp_path, "seeds = [1]\n" + RUN + own)
    assert "compare, 'a': run.seed and --seeds exclude" in problem(tmp_path, RUN + own, seeds=[1, 2])
    setting_problem = "--set run.seed and seeds exclude each other"
    assert setting_problem in problem(tmp_path, "seeds = [1]\n" + RUN + TWO, "run.seed=3")
    assert setting_problem in problem(tmp_path, RUN + TWO, " run.seed = 3", seeds=[1, 2])


def test_seeds_need_a_comparison(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("seeds = [1, 2]\n" + RUN)
    with pytest.raises(ExperimentError, match=r"seeds is for files with \[\[compare\]\].*write run\.seed"):
        load(tmp_path / "x.toml")


def test_seeds_below_a_table_are_refused(tmp_path: Path) -> None:
    assert problem(tmp_path, RUN + "seeds = [1, 2]\n" + TWO).startswith("seeds is in [run]: move it to the top")
    assert problem(tmp_path, RUN + TWO + "seeds = [1]\n").startswith("seeds is in the [[compare]] of 'b'")


@pytest.mark.parametrize(
    ("text", "seeds"), [("1,2,3", [1, 2, 3]), ("1-5", [1, 2, 3, 4, 5]), ("4", [4]), (" 7, 1 - 2 ", [7, 1, 2])]
)
def test_seeds_of_the_command_line(text: str, seeds: list[int]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1,2,3 or --seeds 1-5"),
        ("1,,2", "1,2,3 or --seeds 1-5"),
        ("1 2", "1,2,3 or --seeds 1-5"),
        ("-1", "1,2,3 or --seeds 1-5"),
        ("one", "1,2,3 or --seeds 1-5"),
        ("5-1", "write it as 1-5"),
        ("1-3,2", "2 appears twice"),
        ("9223372036854775808", "less than 2^63"),
        ("1-9999999999", "more than 1000 seeds"),
    ],
)
def test_bad_seeds_on_the_command_line_get_one_sentence(text: str, message: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        parse_seeds(text)
    [sentence] = caught.value.problems
    assert sentence.startswith(f"--seeds {text}: ")
    assert message in sentence
