"""Run directories from anywhere, in which something is not what a run writes: one sentence, and nothing is deleted."""

import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import call
from tests.resumable import STOPPED, Kill, Killer
from vefl_sim import simulate, with_settings
from vefl_sim.analysis.runs import list_runs
from vefl_sim.records.checkpoint import Checkpoints

NETWORK = with_settings(STOPPED, "run.rounds=3", "learning.kind=none")
COMMANDS = ("verify", "trace", "resume")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run that is done, and one that was killed in its third round."""
    out = tmp_path_factory.mktemp("runs")
    done = simulate(with_settings(NETWORK, "run.name=done", "run.rounds=2"), out=out)
    with pytest.raises(Kill):
        simulate(with_settings(NETWORK, "run.name=killed"), out=out, watcher=Killer(3))
    return {"done": done.path, "killed": next(out.glob("killed-*"))}


@pytest.fixture
def killed(made: dict[str, Path], tmp_path: Path) -> Path:
    return copy_of(made["killed"], tmp_path)


def copy_of(run: Path, folder: Path) -> Path:
    return Path(shutil.copytree(run, folder / "runs" / run.name))


def folder_in_place(path: Path) -> None:
    path.mkdir()
    (path / "mine.txt").write_text("mine")


def entries(folder: Path) -> set[tuple[str, int]]:
    return {(str(path), path.lstat().st_ino) for path in folder.rglob("*")}


def refused(*arguments: object) -> str:
    """The one sentence of a command that ends with exit code 2."""
    done = call(*arguments)
    errors = [line for line in done.stderr.splitlines() if not line.startswith("# ")]
    assert done.returncode == 2
    assert len(errors) == 1
    return errors[0]


OTHERS: dict[str, Callable[[Path], None]] = {
    "folder": folder_in_place,
    "pipe": os.mkfifo,
    "dangling link": lambda path: path.symlink_to(path.parent / "nothing"),
    "link": lambda path: path.symlink_to(Path(__file__)),
}


@pytest.mark.parametrize(
    ("name", "other"),
    [
        *((name, "link") for name in ("LOCK", "versions.json", "parts/events-000009.parquet")),
        *((name, "dangling link") for name in ("parts", "DONE", "models", "model.npz")),
        *((name, "folder") for name in ("tables", "tables/vehicles.parquet")),
        *((name, "pipe") for name in ("checkpoints/0000009.npz", "summary.json")),
    ],
)
def test_what_is_not_a_file(killed: Path, name: str, other: str) -> None:
    run, path = killed, killed / name
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    (OTHERS[other] if other != "folder" or "." in name or name.isupper() else Path.touch)(path)
    before = entries(run)
    for command in COMMANDS:
        top = path.parent == run and "link" in other
        assert f"{path} is {'a link' if top else 'not a '}" in refused(command, run)
    assert [run.state for run in list_runs(run.parent)] == ["damaged"]
    assert entries(run) == before


@pytest.mark.parametrize(
    ("state", "lost", "sentence"),
    [
        ("done", "DONE", "DONE is missing, although the run has its summary: restore it"),
        ("killed", "checkpoints", "checkpoints are missing: restore them"),
    ],
)
def test_a_run_that_lost_its_end_or_its_checkpoints_is_not_begun_again(
    made: dict[str, Path], tmp_path: Path, state: str, lost: str, sentence: str
) -> None:
    run = copy_of(made[state], tmp_path)
    path = run / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = {entry for entry in entries(run) if not entry[0].endswith(("LOCK", "sessions.jsonl"))}
    assert sentence in refused("resume", run)
    verified = call("verify", run)
    assert verified.returncode == 1
    assert sentence in verified.stdout
    assert [run.state for run in list_runs(run.parent)] == ["damaged"]
    assert {entry for entry in entries(run) if not entry[0].endswith(("LOCK", "sessions.jsonl"))} == before


@pytest.mark.parametrize(("content", "fault"), [(None, "is missing: restore it"), (b"PAR1", "cannot be read")])
def test_a_finished_run_without_a_table_is_not_called_done(
    made: dict[str, Path], tmp_path: Path, content: bytes | None, fault: str
) -> None:
    finished = copy_of(made["done"], tmp_path)
    table = finished / "tables" / "rounds.parquet"
    table.unlink() if content is None else table.write_bytes(content)
    assert f"{table} {fault}" in refused("resume", finished)
    assert [run.state for run in list_runs(finished.parent)] == ["damaged"]


NONSENSE = ("5", "[" * 100_000, '{"rounds": "x", "last_accuracy": [], "packages": 5}', "\xff")


@pytest.mark.parametrize("text", NONSENSE)
@pytest.mark.parametrize("state", ["done", "killed"])
def test_figures_that_are_none(made: dict[str, Path], tmp_path: Path, state: str, text: str) -> None:
    run = copy_of(made[state], tmp_path)
    for name in ("summary.json", "versions.json", "sessions.jsonl"):
        (run / name).write_bytes(text.encode("latin-1"))
    assert [found.state for found in list_runs(run.parent)] == ["damaged" if (run / "DONE").exists() else "unfinished"]
    for command in COMMANDS:
        assert call(command, run).returncode in (0, 1, 2)


def saved(array: np.ndarray) -> bytes:
    """The bytes of an .npy file."""
    np.lib.format.write_array(file := io.BytesIO(), array)
    return file.getvalue()


def set_part(name: str) -> Callable[[dict], None]:
    return lambda state: state["tables"]["events"][0].update(file=name)


def set_value(**values: object) -> Callable[[dict], None]:
    return lambda state: state.update(values)


EDITS = [
    *(({"change": set_part(name)}, "is damaged (") for name in ("../../secret.parquet", "a.parquet")),
    *(({"change": set_value(**{name: 5})}, "is damaged (") for name in ("figures", "tables")),
    ({"change": set_value(tables={"events": 5})}, "is damaged ("),
    ({"change": set_value(time_ns=5), "forge": False}, "its state.json has changed since it was written"),
    ({"change": set_value(more=" " * 10_000_000), "compression": zipfile.ZIP_DEFLATED}, "it is compressed"),
    ({"array": saved(np.zeros(3)), "forge": False}, ".npy has changed since it was written"),
]


class TestCheckpoints:
    def newest(self, run: Path) -> Path:
        return max((run / "checkpoints").glob("*.npz"))

    def edit(
        self,
        run: Path,
        change: Callable[[dict], object] = lambda content: None,
        array: bytes | None = None,
        *,
        forge: bool = True,
        **member: object,
    ) -> None:
        """Change the state or the first array of the newest checkpoint, in a valid zip file; `forge`: digests, too."""
        path = self.newest(run)
        with zipfile.ZipFile(path) as archive:
            content = {name: archive.read(name) for name in archive.namelist()}
        state = json.loads(content["state.json"])
        change(state)
        content["state.json"] = json.dumps(state).encode()
        if array:
            content[next(name for name in content if name.endswith(".npy"))] = array
        if forge:
            digests = {name: hashlib.sha256(value).hexdigest() for name, value in content.items()}
            content["digests.json"] = json.dumps(digests).encode()
        with zipfile.ZipFile(path, "w", **member) as archive:  # type: ignore[arg-type]
            for name, value in content.items():
                archive.writestr(name, value)

    def fault(self, run: Path) -> str:
        """What is wrong with the newest checkpoint; the one before it is used."""
        last, [fault] = Checkpoints(run).newest()
        assert last is not None
        assert last.round == 2
        return fault

    @pytest.mark.parametrize(("edit", "fault"), EDITS)
    def test_a_changed_one_is_noticed_and_the_one_before_is_used(self, killed: Path, edit: dict, fault: str) -> None:
        self.edit(killed, **edit)
        assert fault in self.fault(killed)

    def test_a_checkpoint_under_the_name_of_another(self, killed: Path) -> None:
        self.newest(killed).rename(killed / "checkpoints" / "0000009.npz")
        assert "it is the one of round 3" in self.fault(killed)

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda state: state["server"].pop("memory"), "server: KeyError"),
            (lambda state: state["tally"].update(lost=5), "tally: TypeError"),
        ],
    )
    def test_a_forged_state_that_cannot_be_restored_is_bad_input(
        self, killed: Path, change: Callable[[dict], object], reason: str
    ) -> None:
        self.edit(killed, lambda content: change(content["state"]))
        assert f"{self.newest(killed)} cannot be restored ({reason}" in refused("resume", "--quiet", killed)
        self.newest(killed).unlink()
        assert call("resume", "--quiet", killed).returncode == 0

    def test_a_member_before_the_file(self, killed: Path) -> None:
        """Seeking there is an error of the system, but the file is to blame, and the one before it is used."""
        path = self.newest(killed)
        content = bytearray(path.read_bytes())
        content[-6:-2] = (int.from_bytes(content[-6:-2], "little") + 1000).to_bytes(4, "little")
        path.write_bytes(content)
        assert "is damaged (" in self.fault(killed)
