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

from tests.resumable import STOPPED, Kill, Killer
from vefl_sim import simulate, with_settings
from vefl_sim.analysis.runs import list_runs
from vefl_sim.cli.main import main
from vefl_sim.core.errors import NotResumable
from vefl_sim.core.files import atomic_file, open_file, read_file, read_json, write_text
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


@pytest.fixture(params=["done", "killed"])
def run(made: dict[str, Path], request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return copy_of(made[request.param], tmp_path)


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


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one sentence of a command that ends with exit code 2."""
    with pytest.raises(SystemExit) as end:
        main([*map(str, arguments)])
    errors = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("# ")]
    assert end.value.code == 2
    assert len(errors) == 1
    return errors[0]


def exit_code(*arguments: object) -> object:
    try:
        main([*map(str, arguments)])
    except SystemExit as end:
        return end.code
    return 0


OTHERS: dict[str, Callable[[Path], None]] = {
    "folder": folder_in_place,
    "pipe": os.mkfifo,
    "dangling link": lambda path: path.symlink_to(path.parent / "nothing"),
    "link": lambda path: path.symlink_to(Path(__file__)),
}


@pytest.mark.parametrize(
    ("name", "other"),
    [
        *((name, "link") for name in ("DONE", "FAILED", "LOCK", "versions.json", "summary.json", "sessions.jsonl")),
        *((name, "dangling link") for name in ("tables", "parts", "checkpoints", "traffic", "DONE")),
        *((name, "folder") for name in ("DONE", "tables", "tables/vehicles.parquet")),
        *((name, "pipe") for name in ("tables/vehicles.parquet", "checkpoints/0000009.npz", "summary.json")),
        ("parts/events-000009.parquet", "link"),
    ],
)
def test_what_is_not_a_file(run: Path, capsys: pytest.CaptureFixture[str], name: str, other: str) -> None:
    path = run / name
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    (OTHERS[other] if other != "folder" or "." in name or name.isupper() else Path.touch)(path)
    before = entries(run)
    for command in COMMANDS:
        top = path.parent == run and "link" in other
        assert f"{path} is {'a link' if top else 'not a '}" in refused(capsys, command, run)
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
    made: dict[str, Path], tmp_path: Path, state: str, lost: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = copy_of(made[state], tmp_path)
    path = run / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = {entry for entry in entries(run) if not entry[0].endswith(("LOCK", "sessions.jsonl"))}
    assert sentence in refused(capsys, "resume", run)
    assert exit_code("verify", run) == 1
    assert sentence in capsys.readouterr().out
    assert [run.state for run in list_runs(run.parent)] == ["damaged"]
    assert {entry for entry in entries(run) if not entry[0].endswith(("LOCK", "sessions.jsonl"))} == before


@pytest.mark.parametrize("damage", ["deleted", "cut"])
def test_a_finished_run_without_a_table_is_not_called_done(
    made: dict[str, Path], tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    finished = copy_of(made["done"], tmp_path)
    table = finished / "tables" / "rounds.parquet"
    table.unlink() if damage == "deleted" else table.write_bytes(table.read_bytes()[:1000])
    assert f"{table} {'is missing: restore it' if damage == 'deleted' else 'cannot be read'}" in refused(
        capsys, "resume", finished
    )
    assert [run.state for run in list_runs(finished.parent)] == ["damaged"]


def test_without_a_readable_experiment(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "resolved.toml").unlink()
    os.mkfifo(run / "resolved.toml")
    for command in COMMANDS:
        assert "is not a run directory: it has no resolved.toml" in refused(capsys, command, run)
    assert list_runs(run.parent) == []


NONSENSE = ("", "5", "[" * 100_000, '{"rounds": "x", "last_accuracy": [], "packages": 5}', '{"packages": []}', "\xff")


@pytest.mark.parametrize("text", NONSENSE)
def test_figures_that_are_none(run: Path, text: str) -> None:
    for name in ("summary.json", "versions.json", "sessions.jsonl"):
        (run / name).write_bytes(text.encode("latin-1"))
    assert [found.state for found in list_runs(run.parent)] == ["damaged" if (run / "DONE").exists() else "unfinished"]
    for command in COMMANDS:
        assert exit_code(command, run) in (0, 1, 2)


# Checkpoints


def newest(run: Path) -> Path:
    return max((run / "checkpoints").glob("*.npz"))


def edit(
    run: Path,
    change: Callable[[dict], object] = lambda content: None,
    array: bytes | None = None,
    *,
    forge: bool = False,
    **member: object,
) -> None:
    """Change the state or the first array of the newest checkpoint, in a zip file that is valid; `forge`: its digests.

    `member`: options of the zip file.
    """
    path = newest(run)
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


def array_file(header: str = "") -> bytes:
    """An array of three numbers, perhaps with another header."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.zeros(3))
    content = file.getvalue()
    return content[:8] + len(header).to_bytes(2, "little") + header.encode() + bytes(24) if header else content


def announcing(kind: str) -> bytes:
    return array_file(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (10000000000,), }}")


def add_members(run: Path, name: str, times: int) -> None:
    """Add a member, listed several times with the same bytes."""
    with zipfile.ZipFile(newest(run), "a") as archive:
        archive.writestr(name, bytes(100_000))
        archive.filelist += [archive.getinfo(name)] * (times - 1)


def move_members(run: Path) -> None:
    """A member before the file: seeking there is an error of the system, but the file is to blame."""
    content = bytearray(newest(run).read_bytes())
    content[-6:-2] = (int.from_bytes(content[-6:-2], "little") + 1000).to_bytes(4, "little")
    newest(run).write_bytes(content)


def part_file(name: str) -> Callable[[Path], None]:
    return lambda run: edit(run, lambda state: state["tables"]["events"][0].update(file=name), forge=True)


def value(**change: object) -> Callable[[Path], None]:
    return lambda run: edit(run, lambda state: state.update(change), forge=True)


DAMAGES: list[tuple[Callable[[Path], object], str]] = [
    (lambda run: edit(run, forge=True, compression=zipfile.ZIP_DEFLATED), "it is compressed"),
    (lambda run: add_members(run, "big.npy", 50), "its members are larger than the file"),
    (lambda run: add_members(run, "more.npy", 1), "its more.npy has changed since it was written"),
    (lambda run: (add_members(run, "more.npy", 1), edit(run, forge=True)), "its state does not name more.npy"),
    *((part_file(name), f"it names a part file {name!r}") for name in ("../../secret.parquet", "/dev/zero", "x/y")),
    *((value(**one), "") for one in ({"round": "x"}, {"figures": 5}, {"tables": 5}, {"tables": {"events": 5}})),
    *((lambda run, k=k: edit(run, array=announcing(k), forge=True), "") for k in ("<f8", "|V0")),
    (lambda run: edit(run, lambda content: content.update(time_ns=1)), "its state.json has changed"),
    (lambda run: edit(run, array=array_file()), ".npy has changed since it was written"),
    (lambda run: newest(run).rename(run / "checkpoints" / "0000009.npz"), "it is the one of round 3"),
    (move_members, ""),
]


@pytest.mark.parametrize(("damage", "reason"), DAMAGES, ids=[f"{n}" for n in range(len(DAMAGES))])
def test_a_damaged_checkpoint_is_noticed_and_the_one_before_is_used(
    damage: Callable[[Path], object], reason: str, killed: Path
) -> None:
    damage(killed)
    last, [fault] = Checkpoints(killed).newest()
    assert last is not None
    assert last.round == 2
    assert "is damaged (" in fault
    assert reason in fault
    newest(killed).replace(killed / "checkpoints" / "0000002.npz")  # now there is no other
    with pytest.raises(NotResumable, match="is damaged"):
        Checkpoints(killed).newest()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda state: state["server"].pop("memory"), "(server: KeyError: 'memory'"),
        (lambda state: state["server"].update(memory=[1]), "(server: TypeError: what the scheme remembers is not"),
        (lambda state: state["tally"].update(lost=5), "(tally: TypeError: "),
    ],
)
def test_a_forged_state_that_cannot_be_restored_is_bad_input(
    killed: Path, change: Callable[[dict], object], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(killed, lambda content: change(content["state"]), forge=True)
    sentence = refused(capsys, "resume", "--quiet", killed)
    assert f"{newest(killed)} cannot be restored {reason}" in sentence
    assert "delete it to resume from the checkpoint before it" in sentence
    newest(killed).unlink()
    assert exit_code("resume", "--quiet", killed) == 0


class TestFiles:
    def test_what_is_not_a_file(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(OSError, match="it is not a file"):
            open_file(tmp_path / "pipe")
        with pytest.raises(IsADirectoryError, match="it is a folder"):
            open_file(tmp_path)

    def test_more_than_expected(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_bytes(bytes(11))
        assert read_file(tmp_path / "x", 11) == bytes(11)
        with pytest.raises(OSError, match="it has more than 1e-05 MB"):
            read_file(tmp_path / "x", 10)

    def test_a_large_json(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_text("[" + '{"":[]},' * (1 << 17) + "0]")
        with pytest.raises(OSError, match=r"it has more than 1.05 MB"):
            read_json(tmp_path / "x")

    def test_deep_json(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_text("[" * 100_000)
        with pytest.raises(ValueError, match="nested too deeply"):
            read_json(tmp_path / "x")

    def test_nothing_is_written_through_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "kept").write_text("mine")
        (tmp_path / "DONE.partial").symlink_to(tmp_path / "kept")
        write_text(tmp_path / "DONE", "new")
        assert (tmp_path / "kept").read_text() == "mine"
        assert (tmp_path / "DONE").read_text() == "new"
        with atomic_file(tmp_path / "DONE") as partial:
            partial.write_text("newer")

    def test_a_command_that_meets_what_the_system_refuses(self, capsys: pytest.CaptureFixture[str]) -> None:
        name = "x" * 1000
        assert refused(capsys, "verify", name) == f"error: {name} cannot be used: File name too long."
