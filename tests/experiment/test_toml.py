import tomllib
from pathlib import Path

import numpy as np
import pytest

from vefl_sim.core.errors import ExperimentError
from vefl_sim.experiment.experiment import Experiment
from vefl_sim.experiment.toml import as_toml, from_tables, load, resolved, to_toml, with_settings
from vefl_sim.schemes.fedprox import FedAvg

NAMED = {"run": {"name": "x"}}


def tables_of(keys: str) -> dict:
    """The tables of an experiment that has a name and these dotted keys, separated by semicolons."""
    return tomllib.loads("\n".join(['run.name = "x"', *keys.split("; ")]))


def problems(tables: dict) -> list[str]:
    with pytest.raises(ExperimentError) as caught:
        from_tables(tables)
    return list(caught.value.problems)


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    path = tmp_path / "x.toml"
    path.write_text('[run]\nname = "x"\nrounds = 3\n[radio]\nprbs = 12\n')
    return path


def test_only_the_name_is_required() -> None:
    assert (from_tables(NAMED).rounds, from_tables(NAMED).duration_ns) == (400, 2000 * 10**9)
    assert "train_samples = 12000\ntest_samples = 2000\n" in to_toml(from_tables(NAMED))
    assert "train_samples" not in to_toml(from_tables({**NAMED, "data": {"kind": "mnist"}}))


def test_resolved_toml_reads_back_as_the_same_experiment(tmp_path: Path) -> None:
    experiment = from_tables({**NAMED, "radio": {"prbs": 3}, "sla": {"base_fee": [1, 2]}})
    path = tmp_path / "resolved.toml"
    path.write_text(to_toml(experiment))
    assert load(path) == resolved(experiment)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ("radio.prb = 3", "radio.prb is not a known key of [radio]; the nearest is radio.prbs."),
        ("vefl.prbs = 3", "vefl.prbs is not a known key of [vefl]; did you mean radio.prbs?"),
        ("raido = {}", "[raido] is not a known table; the nearest is [radio]."),
        ("cells.number = 3", "; not modelled: several gNBs and handover (docs/scope.md says what is)."),
        ("sla.battery_j = 1e6", "; not modelled: batteries and heat (docs/scope.md says what is)."),
    ],
)
def test_an_unknown_name_leads_to_the_nearest_or_to_the_scope(keys: str, sentence: str) -> None:
    [problem] = problems(tables_of(keys))
    assert problem.endswith(sentence)


@pytest.mark.parametrize(
    ("table", "key", "value", "complaint"),
    [
        ("radio", "prb_bandwidth_hz", -1.0, "it must be greater than 0"),
        ("radio", "prb_bandwidth_hz", float("nan"), "it must be a finite number"),
        ("radio", "prbs", 0, "it must be at least 1"),
        ("radio", "prbs", 2.5, "it must be a whole number"),
        ("radio", "carrier_ghz", "3.5", "it must be a number"),
        ("radio", "fading", "nakagami", "it must be 'rayleigh', 'jakes', 'rician' or 'none'"),
        ("traffic", "warm_start", 1, "it must be true or false"),
        ("traffic", "cv_share", 1.5, "it must be at most 1"),
        ("sla", "base_fee", [2.0, 1.0], "the lower bound 2 is above the upper bound 1"),
        ("sla", "base_fee", [1.0], "it must be a range [low, high] of two numbers"),
        ("sla", "base_fee", 5.0, "it must be a range [low, high]"),
        ("mac", "scheduler", "fifo", "it must be 'edf', or a part of your own as \"module:name\""),
        ("model", "factory", "cnn", 'it must be a part as "module:name"'),
        ("roads", "blocks", [8, 4.5], "it must be a whole number from 1 to 50, or two of them as [x, y]"),
        ("run", "name", "a b", "it may hold letters, digits, dots, dashes and underscores"),
    ],
)
def test_bad_value_gets_one_sentence(table: str, key: str, value: object, complaint: str) -> None:
    [problem] = problems({**NAMED, table: {**NAMED.get(table, {}), key: value}})
    assert problem.startswith(f"{table}.{key} = ")
    assert complaint in problem
    assert problem.endswith(".")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("run.rounds = 1; run.duration_s = 9.0", "run.rounds run.duration_s"),
        ("run.duration_s = 1.0", "run.duration_s vefl.round_s"),
        ("run.duration_s = 5e7; vefl.round_s = 0.5", "100000000 rounds of vefl.round_s = 0.5, and 1000000"),
        ("vefl.round_s = 5.0001", "vefl.round_s 0.5 ms"),
        ("mobility.step_s = 0.0003", "mobility.step_s 0.5 ms"),
        ("traffic.mean_in_coverage = 3.0; traffic.arrivals_per_s = 1.0", "mean_in_coverage arrivals_per_s"),
        ("roads.blocks = 3", "roads.blocks radio.coverage_radius_m"),
        ("radio.prb_bandwidth_hz = 1e6", "radio.prb_bandwidth_hz 360000"),
        ("sla.cpu_min_hz = [1e3, 2e9]", "sla.cpu_min_hz sla.cpu_max_hz"),
        ("vefl.min_local_iterations = 90", "min_local_iterations max_local_iterations"),
        ('data.kind = "mnist"; data.image_px = 32', 'data.image_px data.kind = "mnist"'),
        ('data.kind = "folder"', "data.kind data.dir"),
        ("data.shards_per_cv = 3", 'data.shards_per_cv data.partition = "dirichlet"'),
        ('data.partition = "iid"; data.dirichlet_alpha = 1.0', "data.dirichlet_alpha no effect"),
        ('rat.method = "equal"; rat.efficiency_weight = 0.5', "rat.efficiency_weight no effect"),
        ('rat.method = "exact"; radio.prbs = 13', "rat.method radio.prbs"),
        ("vefl.round_s = 3000.0", "run.duration_s vefl.round_s"),
        ("roads.blocks = [4, 6]", "roads.blocks radio.coverage_radius_m"),
        ('roads.exits = "outside"', "roads.exits roads.blocks"),
        ('scheme.kind = "fedprox"; aggregation.form = "models"', "aggregation.form weights_over"),
        ('scheme.kind = "afa-cd"; scheme.rounds = true; aggregation.buffer = 3', "aggregation.buffer in rounds"),
        ('aggregation.form = "models"; aggregation.normalize = true', "aggregation.form aggregation.normalize"),
        ("scheme.constrained = false; vefl.upload_margin = 2.0", "vefl.upload_margin scheme.constrained"),
        ('scheme.kind = "afa-cd"; learning.optimizer = "adam"', 'learning.optimizer = "adam" use "sgd"'),
        ('learning.iterations_per_step = 20; learning.optimizer = "adam"', "iterations_per_step learning.optimizer"),
        ("learning.iterations_per_step = 2; learning.batch_size = 8", "iterations_per_step = 2 learning.batch_size"),
        ('scheme.kind = "centralized"; learning.iterations_per_step = 2', 'no effect scheme.kind = "centralized"'),
        ('learning.keep_models = "best"', "learning.keep_models data.validation_samples"),
        ('mac.tdd = "dU"', 'mac.tdd = "dU" letters U, D and S'),
        ("radio.csi_delay_slots = 10_001", "radio.csi_delay_slots vefl.round_s"),
        ('radio.power = "open-loop"; radio.p0_dbm = 24.0', "radio.p0_dbm = 24 above radio.max_tx_power_w"),
        ('radio.power = "open-loop"; rat.method = "large"', "rat.method radio.power"),
        ('downlink.kind = "broadcast"; mac.tdd = "SU"', "downlink.kind needs downlink slots"),
        ("mac.special_uplink_symbols = 4", "mac.special_uplink_symbols no effect mac.tdd"),
        ("radio.csi_margin_db = 3.0", "radio.csi_margin_db no effect radio.csi_delay_slots"),
    ],
)
def test_a_contradiction_names_its_keys(keys: str, words: str) -> None:
    [problem] = problems(tables_of(keys))
    assert all(word in problem for word in words.split())


def test_all_problems_are_reported_at_once() -> None:
    assert len(problems({"radio": {"prbs": 0, "nonsense": 1}, "vefl": {"budget": -1.0}})) == 4


@pytest.mark.parametrize(
    "keys",
    [
        'roads.blocks = [8, 2]; roads.exits = "outside"',
        'scheme.kind = "fedprox"; aggregation.form = "models"; aggregation.weights_over = "coverage"',
        'scheme.kind = "fedprox"; aggregation.weights_over = "ordered"',
        'scheme.kind = "fdpc"; aggregation.form = "models"; aggregation.weights_over = "coverage"',
        'scheme.kind = "pdpc"; aggregation.form = "models"',
        'scheme.kind = "afa-cd"; scheme.rounds = true; aggregation.server_rate = 0.004',
    ],
)
def test_compatible_keys_are_accepted(keys: str) -> None:
    from_tables(tables_of(keys))


class TestBase:
    def file(self, folder: Path, name: str, text: str) -> Path:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        return folder / name

    def test_keys_of_the_file_replace_those_of_its_base_one_by_one(self, toml: Path) -> None:
        top = self.file(toml.parent, "top.toml", 'base = "x.toml"\n[radio]\nantennas = 2\n[run]\nname = "y"\n')
        experiment = load(top, ["vefl.budget=7.0"])
        assert (experiment.run.name, experiment.run.rounds, experiment.vefl.budget) == ("y", 3, 7.0)
        assert (experiment.radio.prbs, experiment.radio.antennas) == (12, 2)

    def test_a_key_of_the_base_that_excludes_a_key_of_the_file_is_dropped(self, toml: Path) -> None:
        top = self.file(toml.parent, "top.toml", 'base = "x.toml"\nrun.duration_s = 50.0\n')
        assert load(top).run.rounds is None
        assert load(top).rounds == 10

    def test_a_base_may_have_a_base_and_paths_start_at_the_file_that_has_them(self, toml: Path) -> None:
        self.file(toml.parent, "far/mid.toml", 'base = "../x.toml"\n[data]\nkind = "folder"\ndir = "images"\n')
        (toml.parent / "far" / "images").mkdir()
        top = self.file(toml.parent, "top.toml", 'base = "far/mid.toml"\n')
        assert load(top).data.dir == str(toml.parent / "far" / "images")
        assert load(top).radio.prbs == 12

    @pytest.mark.parametrize(
        ("base", "words"),
        [
            ('"top.toml"', ("top.toml", "leads back")),
            ('"nowhere.toml"', ("top.toml, base", "nowhere.toml", "no such file")),
            ("3", ("base = 3", "base.toml")),
            ('""', ("base", "base.toml")),
            ('"/dev/zero"', ("top.toml, base: /dev/zero", "not a file")),
            (r'"a\u0000b"', ("top.toml, base", "not a text file")),
            (f'"{"x" * 300}"', ("top.toml, base", "cannot be read")),
        ],
    )
    def test_bad_bases_are_one_sentence(self, tmp_path: Path, base: str, words: tuple[str, ...]) -> None:
        top = self.file(tmp_path, "top.toml", f'base = {base}\n[run]\nname = "x"\n')
        with pytest.raises(ExperimentError) as caught:
            load(top)
        [problem] = caught.value.problems
        assert all(word in problem for word in words)


def test_a_setting_without_a_value_removes_the_key(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text('[run]\nname = "x"\nduration_s = 50.0\n[radio]\nprbs = 7\n[mobility]\nfile = "f"\nkind = "sumo"\n')
    removed = load(file, ["radio.prbs=", "mobility.kind= ", "mobility.file=", "radio.antennas="])
    assert removed == from_tables({"run": {"name": "x", "duration_s": 50.0}})
    assert load(file, ["run.duration_s=", "run.rounds=3"]).rounds == 3  # not the two keys that exclude each other
    assert load(file, ["mobility.kind=idm", 'mobility.file=""']).mobility.file == ""  # empty text is a value
    assert with_settings(removed, "run.duration_s=").rounds == 400
    with pytest.raises(ExperimentError, match=r"run\.name"):
        load(file, ["run.name="])
    with pytest.raises(ExperimentError, match=r"run\.rounds and run\.duration_s both set"):
        load(file, ["run.rounds=3", "run.duration_s=10.0"])


@pytest.mark.parametrize("deep", ["a = " + "[" * 5000 + "]" * 5000, f"[{'a.' * 5000}a]", f"run.{'a.' * 20}a = 1"])
def test_a_deeply_nested_file_is_refused(tmp_path: Path, deep: str) -> None:
    path = tmp_path / "deep.toml"
    path.write_text(deep)
    with pytest.raises(ExperimentError, match=r"deep\.toml is nested too deeply"):
        load(path)


def test_a_file_too_large_for_an_experiment_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    path.write_text("#" * ((1 << 24) + 1))
    with pytest.raises(ExperimentError, match=r"large\.toml cannot be read: it has more than 16.8 MB"):
        load(path)


def test_a_missing_file_a_directory_and_damaged_files_are_refused(tmp_path: Path) -> None:
    rubbish, broken = tmp_path / "rubbish.toml", tmp_path / "broken.toml"
    rubbish.write_bytes(bytes(range(128, 256)))
    (windows := tmp_path / "windows.toml").write_bytes(b'\xef\xbb\xbf[run]\r\nname = "x"\r\n')
    assert load(windows).run.name == "x"
    broken.write_text("[run\nname=")
    for path, words in [
        (tmp_path / "none.toml", "no such file"),
        (tmp_path, "it is a folder"),
        (rubbish, "not a text file"),
        (broken, "not valid TOML"),
    ]:
        with pytest.raises(ExperimentError, match=words) as caught:
            load(path)
        assert str(path) in str(caught.value)


def test_every_key_is_described_in_the_schema() -> None:
    schema = Experiment.model_json_schema()
    for table in schema["$defs"].values():
        for key, field in table["properties"].items():
            assert field.get("description"), f"{table['title']}.{key}"


@pytest.mark.parametrize("name", ["town.osm", "town.net.xml", "town.sumocfg"])
def test_a_map_instead_of_an_experiment_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("<osm/>")
    with pytest.raises(ExperimentError, match="map import"):
        load(tmp_path / name)


def test_paths_start_at_the_file_or_at_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, folder = tmp_path / "here", tmp_path / "folder"
    for place in (here, folder):
        place.mkdir()
        (place / "both.net.xml").touch()
    (here / "only.net.xml").touch()
    monkeypatch.chdir(here)

    def named(file: str, *settings: str) -> str:
        text = f'[run]\nname = "x"\n[mobility]\nkind = "sumo"\nfile = "{file}"\n'
        (folder / "x.toml").write_text(text)
        return load(folder / "x.toml", settings).mobility.file

    assert named("both.net.xml") == str(folder / "both.net.xml")
    assert named("only.net.xml") == "only.net.xml"
    assert named("no.net.xml") == "no.net.xml"
    assert named("no.net.xml", "mobility.file=both.net.xml") == "both.net.xml"
    assert named(str(here / "both.net.xml")) == str(here / "both.net.xml")


def test_settings_may_be_a_mapping_of_python_values(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text('[run]\nname = "x"\nrounds = 3\n[radio]\nantennas = 4\n')
    changes = {
        "radio.prbs": np.int64(5), "sla.base_fee": [1, 2.5], "scheme.kind": "fdpc", "radio.antennas": None,
        "scheme.constrained": True, "run.duration_s": 30,
    }  # fmt: skip
    for changed in (load(file, changes), with_settings(load(file), changes)):
        assert (changed.radio.prbs, changed.sla.base_fee, changed.scheme.kind) == (5, (1.0, 2.5), "fdpc")
        assert changed.radio.antennas == from_tables({"run": {"name": "x"}}).radio.antennas
        assert (changed.run.rounds, changed.run.duration_s) == (None, 30.0)
    with pytest.raises(AttributeError, match=r'with_settings\(experiment, \{"radio\.prbs": 5\}\)'):
        load(file).radio.prbs = 5
    with pytest.raises(ExperimentError, match=r"radio\.prbs = \"5\": it must be a whole number"):
        with_settings(load(file), {"radio.prbs": "5"})


class Tabled(FedAvg):
    """A scheme that uses the table [flower], and needs no Flower."""

    uses_table = "flower"


def test_a_setting_may_be_a_table() -> None:
    arguments = {"beta": 0.5, "deep": {"a b": [1, {"c": True}]}, "text": 'say "x = {}"'}
    kind = {"scheme.kind": f"{__name__}:Tabled", "flower.arguments": arguments}
    changed = with_settings(from_tables(NAMED), kind)
    assert changed.flower.arguments == arguments
    assert from_tables(tomllib.loads(as_toml(changed))).flower == changed.flower
    for refused in ({"day": tomllib.loads("d = 2026-01-01")["d"]}, {"x": [float("inf")]}):
        with pytest.raises(
            ExperimentError, match=r"flower\.arguments = .* it may hold numbers, texts, lists and tables"
        ):
            from_tables(NAMED | {"flower": {"arguments": refused}})


def test_an_unused_key_is_cleared_as_the_message_says(toml: Path) -> None:
    toml.write_text('[run]\nname = "x"\n[scheme]\nkind = "fedavg"\n[vefl]\nmethod = "exact"\n')
    with pytest.raises(ExperimentError) as caught:
        load(toml)
    sentence = str(caught.value)
    assert sentence.endswith(', or set scheme.kind = "pdpc" or "fdpc".')
    setting = sentence.split("--set ")[1].split(")")[0]
    assert load(toml, [setting]).vefl.method == "lagrangian"
    assert load(toml, ["scheme.kind=fdpc"]).vefl.method == "exact"
