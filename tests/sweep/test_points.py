"""Which experiments a file with a [sweep] or [[compare]] contains, with which seeds."""

from pathlib import Path

import pytest

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.toml import load
from vefl_sim.experiment.unused_keys import without_unused_keys
from vefl_sim.sweep.points import Sweep, load_sweep, parse_seeds

BASE = '[run]\nname = "s"\nrounds = 2\n'
TWO = '[[compare]]\nlabel = "a"\n[[compare]]\nlabel = "b"\nscheme = { kind = "fdpc" }\n'
OWN = '[[compare]]\nlabel = "a"\nrun = { seed = 2 }\n'


def sweep(tmp_path: Path, text: str, *settings: str, seeds: list[int] | None = None, top: str = "") -> Sweep:
    """The sweep of a file with this text below a [run], and `top` above it."""
    file = tmp_path / "s.toml"
    file.write_text(top + BASE + text)
    return load_sweep(file, settings, seeds)


def problem(tmp_path: Path, text: str, *settings: str, seeds: list[int] | None = None, top: str = "") -> str:
    """The only error sentence about this file."""
    with pytest.raises(ExperimentError) as error:
        sweep(tmp_path, text, *settings, seeds=seeds, top=top)
    [sentence] = error.value.problems
    assert sentence.endswith((".", "s.toml"))
    return sentence


def test_lists_are_crossed_and_seeds_are_the_outermost(tmp_path: Path) -> None:
    found = sweep(tmp_path, "[sweep]\nseeds = [4, 5]\nradio.prbs = [6, 12]\nvefl.round_s = [3.0, 5.0]\n")
    assert [(p.seed, p.experiment.radio.prbs, p.experiment.vefl.round_s) for p in found.points] == [
        (s, z, t) for s in (4, 5) for z in (6, 12) for t in (3.0, 5.0)
    ]
    assert found.points[0].values == {"radio.prbs": 6, "vefl.round_s": 3.0}
    assert found.seeds == [4, 5]


def test_zipped_lists_change_in_step_and_are_crossed_with_others(tmp_path: Path) -> None:
    text = "[sweep]\nradio.prbs = [6, 12]\n[[sweep.zip]]\nvefl.round_s = [3.0, 5.0]\nvefl.budget = [300, 500]\n"
    found = sweep(tmp_path, text)
    assert [tuple(p.values.values()) for p in found.points] == [(6, 3, 300), (6, 5, 500), (12, 3, 300), (12, 5, 500)]
    assert [axis.keys for axis in found.axes] == [("radio.prbs",), ("vefl.round_s", "vefl.budget")]


def test_every_variant_is_swept(tmp_path: Path) -> None:
    found = sweep(tmp_path, f"[sweep]\nradio.prbs = [5, 9]\n{TWO}")
    points = [(p.label, p.experiment.scheme.kind, p.experiment.radio.prbs) for p in found.points]
    assert points == [("a", "pdpc", 5), ("a", "pdpc", 9), ("b", "fdpc", 5), ("b", "fdpc", 9)]
    assert found.labels == ["a", "b"]
    assert found.points[0].title == "a, radio.prbs = 5, seed 1"


@pytest.mark.parametrize(
    ("top", "text", "given", "expected"),
    [
        ("seeds = [7, 3]\n", TWO, None, [7, 7, 3, 3]),
        ("seeds = [7, 3]\n", TWO, [5], [5, 5]),
        ("", f"seed = 9\n{TWO}", [5, 6], [5, 5, 6, 6]),
        ("", f"seed = 9\n{TWO}", None, [9, 9]),
        ("", TWO, None, [1, 1]),
        ("", "", [3, 4], [3, 4]),  # one experiment becomes a comparison of its seeds
    ],
)
def test_seeds(tmp_path: Path, top: str, text: str, given: list[int] | None, expected: list[int]) -> None:
    points = sweep(tmp_path, text, seeds=given, top=top).points
    assert [point.seed for point in points] == expected
    assert [point.label for point in points] == (["a", "b"] if text else ["s"]) * (len(points) // (2 if text else 1))


def test_a_list_of_seeds_replaces_the_seed_of_a_base(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text('[run]\nname = "b"\nseed = 4\n')
    (tmp_path / "s.toml").write_text('base = "base.toml"\n[sweep]\nseeds = [7, 3]\n')
    assert load_sweep(tmp_path / "s.toml").seeds == [7, 3]


def test_the_same_point_in_two_sweeps_is_the_same_run(tmp_path: Path) -> None:
    alone = sweep(tmp_path, "[sweep]\nradio.prbs = [6]\n").points[0]
    (other,) = sweep(tmp_path, '[[compare]]\nlabel = "x"\nradio.prbs = 6\n', "run.name=t").points
    assert alone.digest == other.digest
    assert alone.experiment.run.name == other.experiment.run.name == "pdpc-signs-s1"


@pytest.mark.parametrize(
    ("kinds", "lists", "runs"),
    [
        ('"fdpc", "pdpc"', "aggregation.sojourn_weight = [0.0, 1.0]", 3),
        ('"fdpc", "fedprox", "random"', "scheme.selected = [3, 4]", 4),
        ('"centralized"', "data.dirichlet_alpha = [0.5, 9.0]\nvefl.budget = [7, 8]\nscheme.selected = [3, 4]", 1),
        ('"pdpc"', "data.dirichlet_alpha = [0.5, 9.0]\nvefl.budget = [7, 8]\nscheme.selected = [3, 4]", 8),
    ],
)
def test_points_that_differ_only_in_unused_keys_are_the_same_run(
    tmp_path: Path, kinds: str, lists: str, runs: int
) -> None:
    points = sweep(tmp_path, f"[sweep]\nscheme.kind = [{kinds}]\n{lists}\n").points
    assert len({point.digest for point in points}) == runs


def test_a_centralized_run_keeps_its_environment_unless_it_is_a_point(tmp_path: Path) -> None:
    variants = '[[compare]]\nlabel = "a"\nscheme.kind = "centralized"\n[[compare]]\nlabel = "b"\n'
    (plain, _), (shards, _) = (
        sweep(tmp_path, table + variants).points for table in ("", '[data]\npartition = "shards"\n')
    )
    assert plain.digest == shards.digest
    (tmp_path / "s.toml").write_text(BASE + '[scheme]\nkind = "centralized"\nselected = 3\n[vefl]\nbudget = 7\n')
    experiment = load(tmp_path / "s.toml")
    assert (experiment.scheme.selected, experiment.vefl.budget) == (3, 7.0)
    assert without_unused_keys(experiment) == experiment


def test_given_seeds_and_settings_override(tmp_path: Path) -> None:
    text = "[sweep]\nseeds = [1]\nradio.prbs = [6, 12]\nvefl.budget = [100.0, 200.0]\n"
    found = sweep(tmp_path, text, "sweep.vefl.budget=", "vefl.budget=7", seeds=[3])
    assert [(p.seed, p.experiment.vefl.budget) for p in found.points] == [(3, 7.0)] * 2
    settings = ("sweep.radio.prbs=[7]", "sweep.vefl=", "sweep.seeds=[2, 3]")
    assert [(p.experiment.radio.prbs, p.seed) for p in sweep(tmp_path, text, *settings).points] == [(7, 2), (7, 3)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[sweep]\nradio.prb = [6]\n", "sweep.radio.prb: radio.prb is not a known key of [radio]; the nearest is"),
        ("[sweep]\nradios.prbs = [6]\n", "sweep.radios.prbs: [radios] is not a known table; the nearest is [radio]."),
        ("[sweep]\nradio.prbs = []\n", "sweep.radio.prbs: the list is empty; name at least one value, or remove"),
        ("[sweep]\nradio.prbs = 6\n", "sweep.radio.prbs: it must be a list of values, for example [6]."),
        ("[sweep]\nprbs = [6]\n", "sweep.prbs is neither seeds nor zip: a key needs its table"),
        ("[sweep]\nradio.prbs = [6, 6]\n", "sweep: radio.prbs = 6 appears twice"),
        ("[sweep]\nradio.prbs = [6, 300]\n", "sweep, radio.prbs = 300: radio.prbs = 300: it must be at most 275."),
        ("[sweep]\nrun.seed = [1, 2]\n", "sweep.run.seed: it cannot be swept: write the repeats as sweep.seeds"),
        ("[sweep]\n[[sweep.zip]]\nradio.prbs = [6]\nvefl.budget = [1, 2]\n", "radio.prbs has 1, vefl.budget has 2"),
        ("[sweep]\nzip = 3\n", "sweep.zip must be written as tables"),
        ("[sweep]\n[[sweep.zip]]\n", "a table is empty"),
        ("[sweep]\nradio.prbs = [6]\n[[sweep.zip]]\nradio.prbs = [6]\n", "sweep: radio.prbs appears twice"),
        ("[sweep]\nroads.green_s = [9.0, 8.0]\n[roads]\nsignals = 'none'\n", "roads.green_s has no effect with"),
        ("[sweep]\nradio.prbs = [6]\n[[compare]]\nlabel = 'A'\nradio.prbs = 7\n", "'A': radio.prbs is also swept"),
        ("", "has no [sweep]: add one"),
        ("[[compare]]\nscheme = { kind = 'fdpc' }\n", "needs a label, for example"),
        ("[[compare]]\nlabel = 'a'\n[[compare]]\nlabel = 'a'\n", "compare: 'a' appears twice"),
        ("[compare]\nlabel = 'a'\n", "compare must be written as tables"),
        ("[[compare]]\nlabel = 'a'\nscheme = 3\n", "compare, 'a': scheme must be a table"),
        ("[[compare]]\nlabel = 'a'\nradio = { prbs = 0 }\n", "compare, 'a': radio.prbs = 0: it must be at least 1"),
        ("[[compare]]\nlabel = 'a'\nroads = { signals = 'none', green_s = 9.0 }\n", "compare, 'a': roads.green_s has"),
        ("[sweep]\nvefl.budget = " + str([*range(101)]) + "\nsla.cpu_capacitance = " + str([*range(1000)]), "101000"),
    ],
)  # fmt: skip
def test_bad_sweeps_get_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    assert message in problem(tmp_path, text)


@pytest.mark.parametrize(
    ("top", "text", "setting", "given", "message"),
    [
        ("", "[sweep]\nradio.prbs = [6]\n", "radio.prbs=7", None, "--set radio.prbs has no effect"),
        ("", OWN, "run.seed=3", None, "--set run.seed has no effect: every [[compare]]"),
        ("seeds = [1]\n", TWO, "run.seed=3", None, "--set run.seed and a list of seeds exclude each other"),
        ("", TWO, " run.seed = 3", [1, 2], "--set run.seed and a list of seeds exclude each other"),
        ("seeds = [1]\n", f"seed = 3\n{TWO}", "", None, "run.seed and a list of seeds exclude"),
        ("seeds = [1]\n", OWN, "", None, "compare, 'a': run.seed and a list of seeds exclude"),
        ("", OWN, "", [1, 2], "compare, 'a': run.seed and a list of seeds exclude"),
        ("seeds = []\n", TWO, "", None, "the list is empty"),
        ("seeds = 3\n", TWO, "", None, "a list of whole numbers"),
        ("seeds = [1, true]\n", TWO, "", None, "a list of whole numbers"),
        ("seeds = [1, -2]\n", TWO, "", None, "-2 is not"),
        ("", f"seeds = [1, 2]\n{TWO}", "", None, "seeds is in [run]: move it to the top"),
        ("", f"{TWO}seeds = [1]\n", "", None, "seeds is in the [[compare]] of 'b'"),
    ],
)
def test_contradictions_are_refused(
    tmp_path: Path, top: str, text: str, setting: str, given: list[int] | None, message: str
) -> None:
    assert message in problem(tmp_path, text, *filter(None, [setting]), seeds=given, top=top)


def test_other_commands_point_to_sweep(tmp_path: Path) -> None:
    for text, message in (
        (BASE + "[sweep]\nseeds = [1]\n", "run it with: python -m vefl_sim sweep"),
        ("seeds = [1, 2]\n" + BASE, r"seeds is for files with \[\[compare\]\].*write run\.seed"),
        (BASE + TWO, "compares several experiments, and this needs one"),
    ):
        (tmp_path / "s.toml").write_text(text)
        with pytest.raises(ExperimentError, match=message):
            load(tmp_path / "s.toml")


@pytest.mark.parametrize(
    ("text", "seeds"), [("1,2,3", [1, 2, 3]), ("1-5", [1, 2, 3, 4, 5]), ("4", [4]), (" 7, 1 - 2 ", [7, 1, 2])]
)
def test_seeds_of_the_command_line(text: str, seeds: list[int]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((text, "1,2,3 or --seeds 1-5") for text in ("", "1,,2", "1 2", "-1", "one")),
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
