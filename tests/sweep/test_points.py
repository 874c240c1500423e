"""Which experiments a file with a [sweep] contains."""

from pathlib import Path

import pytest

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.toml import load
from vefl_sim.experiment.unused_keys import without_unused_keys
from vefl_sim.sweep.points import Sweep, load_sweep

BASE = '[run]\nname = "s"\nrounds = 2\n'


def sweep(tmp_path: Path, text: str, *settings: str, seeds: list[int] | None = None) -> Sweep:
    """The sweep of a file with this text below a [run]."""
    file = tmp_path / "s.toml"
    file.write_text(BASE + text)
    return load_sweep(file, settings, seeds)


def problem(tmp_path: Path, text: str, *settings: str) -> str:
    """The error message about this file."""
    with pytest.raises(ExperimentError) as error:
        sweep(tmp_path, text, *settings)
    return str(error.value)


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
    assert [(p.experiment.radio.prbs, p.experiment.vefl.round_s, p.experiment.vefl.budget) for p in found.points] == [
        (6, 3.0, 300), (6, 5.0, 500), (12, 3.0, 300), (12, 5.0, 500),
    ]  # fmt: skip
    assert [axis.keys for axis in found.axes] == [("radio.prbs",), ("vefl.round_s", "vefl.budget")]


def test_every_variant_is_swept(tmp_path: Path) -> None:
    text = (
        '[sweep]\nmobility.max_speed_mps = [5.0, 9.0]\n[[compare]]\nlabel = "A"\n[[compare]]\nlabel = "B"\n'
        'scheme.kind = "fdpc"\n'
    )
    found = sweep(tmp_path, text)
    points = [(p.label, p.experiment.scheme.kind, p.experiment.mobility.max_speed_mps) for p in found.points]
    assert points == [("A", "pdpc", 5.0), ("A", "pdpc", 9.0), ("B", "fdpc", 5.0), ("B", "fdpc", 9.0)]
    assert found.labels == ["A", "B"]


def test_a_file_with_variants_only_is_a_sweep_over_its_seeds(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text("seeds = [1, 2]\n" + BASE + '[[compare]]\nlabel = "A"\n')
    assert [(p.label, p.seed) for p in load_sweep(file).points] == [("A", 1), ("A", 2)]
    assert [p.seed for p in load_sweep(file, seeds=[7]).points] == [7]


def test_the_same_point_in_two_sweeps_is_the_same_run(tmp_path: Path) -> None:
    alone = sweep(tmp_path, "[sweep]\nradio.prbs = [6]\n").points[0]
    (other,) = sweep(tmp_path, '[[compare]]\nlabel = "x"\nradio.prbs = 6\n', "run.name=t").points
    assert alone.digest == other.digest
    assert alone.experiment.run.name == other.experiment.run.name == "pdpc-signs-s1"


def test_points_that_differ_only_in_unused_keys_are_the_same_run(tmp_path: Path) -> None:
    text = '[sweep]\nscheme.kind = ["fdpc", "pdpc"]\naggregation.sojourn_weight = [0.0, 1.0]\n'
    digests = [point.digest for point in sweep(tmp_path, text).points]
    assert len(set(digests)) == 3
    assert digests[2] == digests[3]


def test_centralized_learning_is_one_run_for_all_splits_of_the_data(tmp_path: Path) -> None:
    text = (
        "[sweep]\ndata.dirichlet_alpha = [0.5, 10.0]\nvefl.budget = [7, 8]\nscheme.selected = [3, 4]\n"
        'scheme.kind = ["centralized", "pdpc"]\n'
    )
    points = sweep(tmp_path, text).points
    digests = {kind: {p.digest for p in points if p.experiment.scheme.kind == kind} for kind in ("centralized", "pdpc")}
    assert {kind: len(different) for kind, different in digests.items()} == {"centralized": 1, "pdpc": 8}
    variants = '[[compare]]\nlabel = "a"\nscheme.kind = "centralized"\n[[compare]]\nlabel = "b"\n'
    (alone, _) = sweep(tmp_path, '[data]\npartition = "shards"\nshards_per_cv = 3\n' + variants).points
    assert {alone.digest} == digests["centralized"]


def test_other_schemes_are_one_run_for_all_numbers_of_selected_cvs(tmp_path: Path) -> None:
    points = sweep(tmp_path, '[sweep]\nscheme.kind = ["fdpc", "fedprox", "random"]\nscheme.selected = [3, 4]\n').points
    assert len({point.digest for point in points}) == 4


def test_a_single_centralized_run_keeps_its_environment(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        BASE + '[scheme]\nkind = "centralized"\nselected = 3\n[data]\npartition = "iid"\n[vefl]\nbudget = 7\n'
    )
    experiment = load(file)
    assert (experiment.scheme.selected, experiment.data.partition, experiment.vefl.budget) == (3, "iid", 7.0)
    assert without_unused_keys(experiment) == experiment


def test_given_seeds_and_settings_override(tmp_path: Path) -> None:
    found = sweep(tmp_path, "[sweep]\nseeds = [1]\nradio.prbs = [6, 12]\n", "vefl.budget=7", "run.rounds=1", seeds=[3])
    assert [(p.seed, p.experiment.vefl.budget, p.experiment.run.rounds) for p in found.points] == [(3, 7.0, 1)] * 2
    shorter = sweep(tmp_path, "[sweep]\nradio.prbs = [6, 12]\n", "sweep.radio={prbs=[7]}", "sweep.seeds=[2, 3]")
    assert [(p.experiment.radio.prbs, p.seed) for p in shorter.points] == [(7, 2), (7, 3)]


def test_a_setting_without_a_value_removes_an_axis_or_a_key(tmp_path: Path) -> None:
    text = "[sweep]\nradio.prbs = [6, 12]\nvefl.budget = [100.0, 200.0]\n"
    assert [p.experiment.vefl.budget for p in sweep(tmp_path, text, "sweep.radio.prbs=").points] == [100.0, 200.0]
    assert [p.seed for p in sweep(tmp_path, "seed = 3\n" + text, "run.seed=", "sweep.vefl=", seeds=[4]).points] == [
        4,
        4,
    ]


def test_the_title_names_what_differs(tmp_path: Path) -> None:
    text = '[sweep]\nradio.prbs = [6]\n[[compare]]\nlabel = "A"\n'
    assert sweep(tmp_path, text).points[0].title == "A, radio.prbs = 6, seed 1"


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
        ("[sweep]\nseeds = []\n", "sweep.seeds: the list is empty"),
        ("[sweep]\nseeds = [1, 1]\n", "sweep.seeds: 1 appears twice"),
        ("[sweep]\n[[sweep.zip]]\nradio.prbs = [6]\nvefl.budget = [1, 2]\n", "radio.prbs has 1, vefl.budget has 2"),
        ("[sweep]\n[[sweep.zip]]\nradio.prbs = [6, 6]\nvefl.budget = [1, 1]\n", "vefl.budget = 1 appears twice"),
        ("[sweep]\nscheme.kind = ['pdpc']\n[[compare]]\nlabel = 'A'\nscheme = 5\n", "'A': scheme must be a table"),
        ("[sweep]\nzip = 3\n", "sweep.zip must be written as tables"),
        ("[sweep]\n[[sweep.zip]]\n", "sweep.zip: a table is empty"),
        ("[sweep]\nradio.prbs = [6]\n[[sweep.zip]]\nradio.prbs = [6]\n", "sweep: radio.prbs appears twice"),
        ("[sweep]\nroads.green_s = [9.0, 8.0]\n[roads]\nsignals = 'none'\n", "roads.green_s has no effect with"),
        ("[sweep]\nradio.prbs = [6]\n[[compare]]\nlabel = 'A'\nradio.prbs = 7\n", "'A': radio.prbs is also swept"),
        ("", "has no [sweep]: add one"),
        ("[sweep]\nvefl.budget = " + str([*range(101)]) + "\nsla.cpu_capacitance = " + str([*range(1000)]), "101000"),
    ],
)  # fmt: skip
def test_bad_sweeps_get_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    assert message in problem(tmp_path, text)


def test_a_setting_of_a_swept_key_is_refused(tmp_path: Path) -> None:
    assert "--set radio.prbs has no effect" in problem(tmp_path, "[sweep]\nradio.prbs = [6]\n", "radio.prbs=7")
    assert "run.seed and seeds exclude each other" in problem(tmp_path, "[sweep]\nseeds = [6]\n", "run.seed=7")


def test_a_seed_beside_given_seeds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"--set run\.seed and seeds exclude each other"):
        sweep(tmp_path, "[sweep]\nradio.prbs = [6]\n", "run.seed=7", seeds=[1, 2])


def test_a_list_of_the_sweep_can_be_set_by_its_key(tmp_path: Path) -> None:
    text = "[sweep]\nradio.prbs = [6, 12]\nradio.antennas = [2, 4]\n"
    found = sweep(tmp_path, text, "sweep.radio.prbs=[7]")
    assert [(p.experiment.radio.prbs, p.experiment.radio.antennas) for p in found.points] == [(7, 2), (7, 4)]


def test_other_commands_point_to_sweep(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(BASE + "[sweep]\nseeds = [1]\n")
    with pytest.raises(ExperimentError, match="run it with: python -m vefl_sim sweep"):
        load(file)


def test_relative_paths_start_at_the_folder_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    text = (
        '[sweep]\ndata.dir = ["pictures", "nowhere"]\n[[sweep.zip]]\nmobility.file = ["s.toml"]\n'
        '[data]\nkind = "folder"\n[mobility]\nkind = "playback"\n'
    )
    first, second = sweep(tmp_path, text).points
    assert first.experiment.data.dir == str(tmp_path / "pictures")
    assert second.experiment.data.dir == "nowhere"
    assert first.experiment.mobility.file == str(tmp_path / "s.toml")


def test_seeds_make_a_comparison_of_one_experiment(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text('[run]\nname = "one"\nrounds = 2\n')
    sweep = load_sweep(file, seeds=[3, 4])
    assert [(point.label, point.seed) for point in sweep.points] == [("one", 3), ("one", 4)]
    with pytest.raises(ExperimentError, match=r"has no \[sweep\]"):
        load_sweep(file)
