"""A resumed run gives the same bytes, digest and figures as an uninterrupted one."""

import hashlib
import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from tests.protocol.test_burst import ALL, EARLY, KEYS, NO_ROUNDS
from tests.protocol.test_golden import EXPERIMENT as GOLDEN
from tests.resumable import EXPERIMENT, STOPPED, Kill, Killer, Silent, contents, figures, only
from vefl_sim import Experiment, Run, from_tables, resume, simulate, trees, with_settings
from vefl_sim.analysis.verify.verification import verify
from vefl_sim.cli.progress import PipedConsole, RunProgress
from vefl_sim.core import files
from vefl_sim.core.errors import NotResumable, RunFailed, VeflWarning
from vefl_sim.core.state import pack
from vefl_sim.experiment.toml import to_toml
from vefl_sim.mobility.grid.traffic import IdmTraffic
from vefl_sim.mobility.scene import Scene
from vefl_sim.radio.link import Link
from vefl_sim.records.checkpoint import Checkpoints
from vefl_sim.schemes.fedprox import FedAvg
from vefl_sim.simulation.scenario import build_scenario


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulate(STOPPED, out=tmp_path_factory.mktemp("undisturbed"))


NETWORK = with_settings(STOPPED, "run.rounds=5", "learning.kind=none")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run without learning."""
    return simulate(NETWORK, out=tmp_path_factory.mktemp("network"))


KILLED = tempfile.TemporaryDirectory()


def killed_at(experiment: Experiment, out: Path, *rounds: int) -> Run:
    """A run that was killed at the end of each of these rounds, and resumed in between; made once, and copied."""
    made = Path(KILLED.name) / hashlib.sha256(f"{rounds}{to_toml(experiment)}".encode()).hexdigest()
    if not made.exists():
        for round in rounds:
            with pytest.raises(Kill):
                simulate(experiment, out=made, watcher=Killer(round))
    copytree(made, out, dirs_exist_ok=True)
    return only(out)


def same(one: Run, other: Run) -> bool:
    return contents(one) == contents(other) and figures(one) == figures(other)


def test_killed_and_continued_is_undisturbed(undisturbed: Run, tmp_path: Path) -> None:
    killed_at(STOPPED, tmp_path, 1, 5, 6, 8)
    watcher = Silent()
    run = simulate(STOPPED, out=tmp_path, watcher=watcher)
    assert watcher.resumed == [8]
    assert run.state == "done"
    assert same(run, undisturbed)
    assert run.content_digest() == undisturbed.summary["content_digest"]
    assert sorted(path.name for path in run.path.iterdir()) == sorted(path.name for path in undisturbed.path.iterdir())


HERE, NETWORKS = "tests.simulation.test_resume", "tests.learning.networks"
MEMORY = ["scheme.selected=", "run.rounds=8"]
"""For schemes with a memory, which order all CVs."""
VARIANTS = {
    "without slots": ["trace.slots=off", "learning.kind=none", "radio.shadowing=none"],
    "no rounds": ["scheme.kind=afa-cd", "mac.start=ready", "aggregation.buffer=3", "learning.keep_models=1"],
    "all radio keys, no rounds, uploads": [
        *(*ALL, *NO_ROUNDS, "learning.kind=none", "trace.slots=uploads"),
        *("vefl.round_s=0.7035", "mobility.step_s=0.3"),  # checkpoints are in the middle of a bin
    ],
    "best model": ["learning.keep_models=best", "data.validation_samples=60", "learning.learning_rate=0.5"],
    "own state": ["learning.kind=none", f"radio.channel={HERE}:Remembering"],
    "control variates, bfloat16": ["scheme.kind=scaffold", *MEMORY, f"model.factory={NETWORKS}:half"],
    "coded updates, statistics": [
        *("scheme.kind=fedasync", "mac.start=ready", "update.codec=top-k", *MEMORY, f"model.factory={NETWORKS}:normed")
    ],
}
SLOW_VARIANTS = {
    "drawn": ["scheme.kind=random", "aggregation.p_suc=history"],
    "rounds off the steps": ["vefl.round_s=0.7035", "mobility.step_s=0.3"],
    "no rounds, one pRB": ["scheme.kind=afa-cd", "aggregation.buffer=2", "radio.prbs=1", "learning.batch_size=9"],
    "no rounds, no constraints": ["scheme.kind=afa-cd", "scheme.constrained=false", "vefl.max_local_iterations=40"],
    "all are busy": ["scheme.kind=fedbuff", "scheme.constrained=false", "traffic.mean_in_coverage=2", "run.seed=13"],
    "all in one place": ["scheme.kind=centralized", "learning.keep_models=1"],
    "positions": [
        *("data.kind=positions", "data.partition=own", "data.train_samples=", "data.test_samples="),
        *(
            "data.image_px=",
            "model.factory=vefl_models.gru:gru",
            "learning.loss=mse",
            "vefl.round_s=5.0",
            "data.min_samples=1",
        ),
    ],
    "ticked": ["rat.method=tests.protocol.test_burst:plain_policy"],
    **{f"{kind}, memory": [f"scheme.kind={kind}", *MEMORY] for kind in ("fedyogi", f"{HERE}:InJax")},
    **{
        f"{kind}, bfloat16": [f"scheme.kind={kind}", *MEMORY, f"model.factory={NETWORKS}:half"]
        for kind in ("feddyn", "fedadam")
    },
    "utilities": ["scheme.kind=oort", "run.rounds=8"],
    "coded updates": ["update.codec=top-k", "run.rounds=8"],
    "coded updates, no rounds": ["scheme.kind=fedbuff", "mac.start=ready", "update.codec=top-k", *MEMORY],
    "terms of orders under way": ["scheme.kind=tests.schemes.anchored:Anchored", "mac.start=ready", "run.rounds=8"],
    "replayed traffic": ["learning.kind=none", f"mobility.kind={HERE}:OwnTraffic"],
    "replayed channel": ["learning.kind=none", f"radio.channel={HERE}:OwnChannel"],
    **{
        f"radio: {name}": ["learning.kind=none", *keys]
        for name, keys in {"jakes": KEYS["jakes"], "all": ALL, "between two scenes": EARLY}.items()
    },
}


@pytest.mark.parametrize(
    "settings",
    [
        *(pytest.param(settings, id=name) for name, settings in VARIANTS.items()),
        *(pytest.param(settings, id=name, marks=pytest.mark.slow) for name, settings in SLOW_VARIANTS.items()),
    ],
)
def test_killed_equals_whole(settings: list[str], tmp_path: Path) -> None:
    """Tables, summary, confusion matrix and models of every kind of run, killed twice."""
    experiment = with_settings(STOPPED, "run.rounds=4", *settings)
    whole = simulate(experiment, out=tmp_path / "whole")
    killed = killed_at(experiment, tmp_path / "pieces", 2, 3)
    assert [finding for finding in verify(killed) if not finding.passed] == []
    assert not (killed.path / "model.npz").exists()
    watcher = RunProgress(PipedConsole(quiet=True), None)
    assert same(simulate(experiment, out=tmp_path / "pieces", watcher=watcher), whole)
    assert [finding for finding in verify(whole) if not finding.passed] == []


def test_a_recording_goes_on(tmp_path: Path) -> None:
    recorded = simulate(with_settings(STOPPED, "run.rounds=4", "trace.mobility_every_s=0.1"), out=tmp_path / "recorded")
    tables = EXPERIMENT | {"mobility": {"kind": "playback", "file": str(recorded.path), "max_speed_mps": 26.82}}
    del tables["traffic"], tables["roads"]
    experiment = with_settings(from_tables(tables), "run.rounds=4", "learning.kind=none")
    whole = simulate(experiment, out=tmp_path / "whole")
    killed_at(experiment, tmp_path / "pieces", 3)
    assert same(simulate(experiment, out=tmp_path / "pieces"), whole)


class InJax(FedAvg):
    """A momentum of the server that is kept in arrays of JAX, and changed in place of its dict."""

    def __init__(self, experiment) -> None:  # type: ignore[no-untyped-def]
        super().__init__(experiment)
        self.memory = {"v": None}

    def aggregate_updates(self, updates, model):  # type: ignore[no-untyped-def]
        import jax
        import jax.numpy as jnp

        change = trees.weighted_sum([u.change for u in updates], [u.weight for u in updates])
        old = self.memory["v"] or trees.zeros(model)
        self.memory["v"] = jax.tree.map(lambda v, c: 0.7 * jnp.asarray(v) + jnp.sin(jnp.asarray(c)), old, change)
        return jax.tree.map(lambda w, v: w + v, model, self.memory["v"])


class OwnTraffic:
    """The default traffic without state() and restore()."""

    def __init__(self, experiment, streams) -> None:
        self._traffic = IdmTraffic(experiment, streams)
        self.step_ns, self.scene, self.advance = self._traffic.step_ns, self._traffic.scene, self._traffic.advance


class OwnChannel:
    """A channel that depends on all past positions, without state() and restore()."""

    def __init__(self, experiment, streams) -> None:
        self._link, self._seen = Link.of(experiment.radio), {}

    def move(self, scene: Scene) -> None:
        for cv, x_m in zip(scene.vehicle.tolist(), scene.x_m.tolist(), strict=True):
            self._seen[cv] = 0.9 * self._seen.get(cv, 0.0) + x_m

    def mean_snr_per_watt(self, cvs) -> np.ndarray:
        return self._link.snr_per_watt(np.array([100 + abs(self._seen[cv]) / 100 for cv in cvs.tolist()]))

    def fading_gains(self, slot, slots, cvs) -> np.ndarray:
        return np.ones((slots, len(cvs), self._link.prbs))

    def worst_case_rate_bps(self, cvs) -> np.ndarray:
        return self._link.rate_bps(self._link.max_power_w * self.mean_snr_per_watt(cvs))


class Remembering(OwnChannel):
    """The same with a state of integer keys, tuples and numpy scalars."""

    def state(self) -> dict:
        return {"seen": self._seen, "pair": (1, np.float64(0.1)), "array": {"array": np.arange(3)}}

    def restore(self, state: dict) -> None:
        assert state["pair"] == (1, 0.1)
        assert state["array"]["array"].tolist() == [0, 1, 2]
        self._seen = state["seen"]


@pytest.mark.slow
def test_traffic_that_does_not_repeat_itself_cannot_be_continued(tmp_path: Path) -> None:
    experiment = with_settings(STOPPED, "run.rounds=4", "learning.kind=none", f"mobility.kind={HERE}:Moody")
    run = killed_at(experiment, tmp_path, 3)
    parts = {file: file.read_bytes() for file in (run.path / "parts").glob("*.parquet")}
    for _ in range(2):
        with pytest.raises(RunFailed, match="gave other positions when repeated"):
            simulate(experiment, out=tmp_path)
    assert parts == {file: file.read_bytes() for file in parts}
    assert run.rounds["round"].tolist() == [1, 2]


class Moody(OwnTraffic):
    """Cars that start somewhere else each time."""

    def __init__(self, experiment, streams) -> None:
        super().__init__(experiment, streams)
        shift_m = random.random()

        def shifted(look):
            def scene() -> Scene:
                here = look()
                return Scene(**vars(here) | {"x_m": here.x_m + shift_m})

            return scene

        self.scene, self.advance = shifted(self.scene), shifted(self.advance)


def die_at(monkeypatch: pytest.MonkeyPatch, write: int, *, after: bool) -> Callable[[], int]:
    """Raise Kill before or after the given file write of a run; the returned function counts the writes."""
    original, count = files.publish, 0

    def deadly(partial: Path, path: Path) -> None:
        nonlocal count
        count += 1
        if count == write and not after:
            raise Kill
        original(partial, path)
        if count == write:
            raise Kill

    for module in ("files", "tables"):
        monkeypatch.setattr(f"vefl_sim.core.{module}.publish", deadly)
    return lambda: count


@pytest.mark.slow
def test_a_crash_at_any_write_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rounds with a checkpoint after the first and at the end: dies at every single write, before and after it."""
    short = with_settings(STOPPED, "run.rounds=2")
    scenario = build_scenario(short)
    monkeypatch.setattr("vefl_sim.simulation.run.build_scenario", lambda *_: scenario)
    with monkeypatch.context() as patch:
        count = die_at(patch, 0, after=False)
        whole = simulate(short, out=tmp_path / "whole")
    writes = count()
    # inputs, two checkpoints, confusion matrix, model and its card, tables and the last timings, summary and DONE
    assert writes == 3 + 7 + 7 + 1 + 2 + 7 + 2
    for write in range(1, writes + 1):
        for after in (False, True):
            out = tmp_path / f"{write}{after}"
            with monkeypatch.context() as patch:
                die_at(patch, write, after=after)
                with pytest.raises(Kill):
                    simulate(short, out=out)
            run = simulate(short, out=out)
            assert same(run, whole), (write, after)


@pytest.mark.parametrize("settings", [[], ["scheme.kind=afa-cd", "mac.start=ready"]], ids=["rounds", "no rounds"])
def test_everything_that_changes_is_in_a_checkpoint(settings: list[str], tmp_path: Path) -> None:
    """Some rounds after resuming, a run has the same state as the uninterrupted one."""
    experiment = with_settings(STOPPED, "learning.kind=none", *settings)
    last = 5 if settings else 6  # windows are reported one later
    runs = killed_at(experiment, tmp_path / "straight", last), killed_at(experiment, tmp_path / "resumed", 3, 4, last)
    arrays: list[dict] = [{}, {}]
    packed = []
    for run, into in zip(runs, arrays, strict=True):
        checkpoint, _ = Checkpoints(run.path).newest()
        assert checkpoint is not None
        assert checkpoint.round == 6
        packed.append(pack(checkpoint.state, into))
    sums = [state["ledger"].pop("totals") | {"bits": state["audit"].pop("bits")} for state in packed]
    assert sums[0] == pytest.approx(sums[1], rel=1e-12)  # sums depend slightly on where bursts are cut
    assert packed[0] == packed[1]
    assert arrays[0].keys() == arrays[1].keys()
    assert all(np.array_equal(arrays[0][name], arrays[1][name]) for name in arrays[0])


def test_a_failed_run_is_continued_from_its_last_checkpoint(network: Run, tmp_path: Path) -> None:
    class Clumsy(Silent):
        def round(self, report) -> None:
            if report.round == 4:
                raise ZeroDivisionError("for once")

    with pytest.raises(RunFailed, match="for once"):
        simulate(NETWORK, out=tmp_path, watcher=Clumsy())
    run = only(tmp_path)
    assert run.state == "failed"
    assert run.rounds["round"].tolist() == [1, 2, 3, 4]  # all rows before the error are kept
    watcher = Silent()
    assert same(resume(run.path, watcher=watcher), network)
    assert watcher.resumed == [4]
    assert not (run.path / "FAILED").exists()


def test_up_to_the_last_checkpoint_everything_reads(tmp_path: Path) -> None:
    run = killed_at(NETWORK, tmp_path, 4)
    assert run.state == "unfinished"
    assert run.rounds["round"].tolist() == [1, 2, 3]
    assert run.events["round"].max() == 3
    assert run.summary["rounds"] == 3
    assert all(len(run.table(name)) for name in ("vehicles", "slots", "mobility", "timings"))


def test_a_flipped_bit_in_a_checkpoint_shows(tmp_path: Path) -> None:
    run = killed_at(NETWORK, tmp_path, 4)
    for file in (run.path / "checkpoints").iterdir():
        content = bytearray(file.read_bytes())
        content[content.index(b'"round"')] ^= 1  # in its state; a few bytes of a zip mean nothing
        file.write_bytes(content)
    with pytest.raises(NotResumable, match=r"is damaged(.|\n)*has no other checkpoint.*--fresh") as raised:
        resume(run)
    assert len(raised.value.problems) == 3
    assert run.state == "unfinished"


def test_any_flipped_bit_of_a_checkpoint_is_noticed_or_harmless(tmp_path: Path) -> None:
    run = killed_at(with_settings(from_tables(GOLDEN), "run.checkpoint_every=1"), tmp_path, 2)
    [file] = (run.path / "checkpoints").iterdir()
    content, noticed = file.read_bytes(), 0

    def read() -> tuple[object, dict]:
        arrays: dict = {}
        return pack(Checkpoints(run.path).newest()[0].state, arrays), arrays

    state, arrays = read()
    for place in range(0, len(content), len(content) // 200):
        file.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        try:
            found, others = read()
        except NotResumable as error:
            noticed += "is damaged" in str(error)
        else:
            assert found == state
            assert {name: value.tobytes() for name, value in others.items()} == {
                name: value.tobytes() for name, value in arrays.items()
            }
    assert noticed > 100


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1000])


@pytest.mark.parametrize(
    ("name", "damage", "round"),
    [
        ("checkpoints/0000004.npz", cut, 3),
        ("parts/rounds-000003.parquet", Path.unlink, 3),  # only the last checkpoint needs it
        ("checkpoints/0000005.npz.partial", Path.touch, 4),  # half written when the run was killed
    ],
)
def test_damage_costs_a_round_at_most(
    name: str, damage: Callable[[Path], None], round: int, network: Run, tmp_path: Path
) -> None:
    run = killed_at(NETWORK, tmp_path, 4)
    damage(run.path / name)
    watcher = Silent()
    assert same(resume(run, watcher=watcher), network)
    assert watcher.resumed == [round]
    assert all(f"{run.path / name} is" in note for note in watcher.notes)


def edit_versions(run: Run, **changes) -> None:
    file = run.path / "versions.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_a_run_of_another_version_is_left_alone(tmp_path: Path) -> None:
    run = killed_at(NETWORK, tmp_path, 4)
    edit_versions(run, configuration="old", packages={"vefl_sim": "0.0.9"}, **{"vefl_sim source": "0123456789"})
    with pytest.raises(NotResumable, match=r"started with vefl_sim 0\.0\.9 \(source 0123456789\)"):
        resume(run)
    assert run.rounds["round"].tolist() == [1, 2, 3]
    toml = run.path / "resolved.toml"
    toml.write_text(toml.read_text().replace("[run]", "[run]\nkey_of_old = 1"))
    with pytest.raises(NotResumable, match=r"started with vefl_sim 0\.0\.9"):
        resume(run)


def test_a_run_whose_parts_have_changed_is_left_alone(tmp_path: Path) -> None:
    run = killed_at(from_tables(GOLDEN | {"run": {"name": "g", "rounds": 2, "checkpoint_every": 1}}), tmp_path, 2)
    versions = json.loads((run.path / "versions.json").read_text())
    edit_versions(run, configuration="other", parts=versions["parts"] | {"tests.scripted:ThreeCars": "old"})
    with pytest.raises(NotResumable, match=r"source of tests\.scripted:ThreeCars has changed"):
        resume(run)


def test_other_libraries_are_noted(tmp_path: Path) -> None:
    run = killed_at(NETWORK, tmp_path, 4)
    packages = json.loads((run.path / "versions.json").read_text())["packages"]
    edit_versions(run, packages=packages | {"numpy": "1.0"})
    watcher = Silent()
    resume(run, watcher=watcher)
    assert len(watcher.notes) == 1
    assert watcher.notes[0].startswith("numpy 1.0 is now ")


def test_the_last_two_checkpoints_are_kept_open_with_numpy_and_hold_no_pickle(tmp_path: Path) -> None:
    folder = killed_at(STOPPED, tmp_path, 4).path / "checkpoints"
    assert sorted(file.name for file in folder.iterdir()) == ["0000003.npz", "0000004.npz"]
    with np.load(folder / "0000004.npz", allow_pickle=False) as archive:
        assert json.loads(archive["state.json"])["round"] == 4
        assert archive["server/model/params.Dense_0.kernel"].shape == (768, 16)


def test_a_run_without_a_checkpoint_says_that_it_starts_again(tmp_path: Path) -> None:
    run = killed_at(with_settings(NETWORK, "run.checkpoint_every=1000", "run.rounds=2"), tmp_path, 2)
    with pytest.warns(VeflWarning, match="before its first checkpoint"):
        resume(run)
    assert run.is_done
